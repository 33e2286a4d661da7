"""Tests of reading the record of an upgrade, as the packages' script writes it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.adapters.upgrade import record
from agent.adapters.upgrade.record import kept_version, read_upgrade

NOW = datetime(2026, 11, 23, 20, 0, tzinfo=UTC)
FAILED_RECORD = (
    "state=failed\nfrom=1.0.0\nto=1.1.0\nreason=did not reach the service\n"
    "at=2026-11-23T14:02:07Z\nlog=try 3: refused\n"
)
PENDING_RECORD = (
    "state=pending\nfrom=1.0.0\nto=1.1.0\nreached=yes\nboot=b\nbegan_s=7\nat=2026-11-22T14:02:07Z\n"
)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(record, "RECORD", tmp_path / "upgrade")
    monkeypatch.setattr(record, "SELECTED", tmp_path / "venue-agent.current")
    monkeypatch.setattr(record, "KEPT", tmp_path / "venue-agent.previous")
    return tmp_path / "upgrade"


def test_a_failed_upgrade_names_both_versions_the_reason_and_the_time(file: Path) -> None:
    file.write_text(FAILED_RECORD)
    upgrade = read_upgrade()
    assert upgrade is not None
    assert upgrade.describe(NOW) == (
        "version 1.1.0 did not reach the service; 1.0.0 runs again since 14:02"
    )
    assert upgrade.log == "try 3: refused"
    assert "newer version" in upgrade.advice


def test_a_pending_upgrade_is_being_verified(file: Path) -> None:
    file.write_text(PENDING_RECORD)
    upgrade = read_upgrade()
    assert upgrade is not None
    assert upgrade.describe(NOW) == "version 1.1.0 is being verified since 22 Nov 14:02"
    assert upgrade.advice == ""


def test_an_upgrade_is_incomplete_while_the_kept_version_is_selected(file: Path) -> None:
    file.write_text(PENDING_RECORD)
    record.SELECTED.symlink_to("venue-agent.previous")
    upgrade = read_upgrade()
    assert upgrade is not None
    assert upgrade.describe(NOW) == "the upgrade to 1.1.0 is not complete; 1.0.0 runs"
    assert "dpkg --configure -a" in upgrade.advice


@pytest.mark.parametrize("text", [None, "", "state=other\n", "\xff=\n", "state"], ids=repr)
def test_without_a_valid_record_there_is_no_upgrade(file: Path, text: str | None) -> None:
    if text is not None:
        file.write_bytes(text.encode("latin-1"))
    assert read_upgrade() is None


def test_the_kept_version_is_read_from_its_directory() -> None:
    assert kept_version(None) is None
    record.KEPT.mkdir()
    assert kept_version(None) == "unknown"
    (record.KEPT / "version").write_text("1.0.0\n")
    assert kept_version(None) == "1.0.0"
