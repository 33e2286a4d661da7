"""Tests the parts of the Windows packages that need no Wine, and the Homebrew formula."""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from agent.cli import main as cli
from tests.packaging.scripts import packaging_script

REQUIRED = {
    "version": {"DefaultLocale"},
    "installer": {"Installers"},
    "defaultLocale": {"PackageLocale", "Publisher", "PackageName", "License", "ShortDescription"},
}
"""The keys that the JSON schemas of winget manifests 1.10.0 require, by the type of a manifest."""
REQUIRED_ALWAYS = {"PackageIdentifier", "PackageVersion", "ManifestType", "ManifestVersion"}
REQUIRED_INSTALLER = {"Architecture", "InstallerUrl", "InstallerSha256"}
GUID = re.compile(r"\{[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}")
ROLLBACK = 0x100
"""The bit in the type of an action that Windows Installer runs only during a rollback."""


@pytest.fixture(scope="module")
def msi() -> ModuleType:
    return packaging_script("windows/build_msi.py")


def rows(table: str) -> list[list[str]]:
    return [line.split("\t") for line in table.splitlines()[3:]]


def test_versions_have_different_product_codes_and_the_same_upgrade_code(msi: ModuleType) -> None:
    codes = {msi.braced(msi.product_code(version)) for version in ("1.0.0", "1.0.1", "1.0.0")}
    assert len(codes) == 2
    assert all(GUID.fullmatch(code) for code in codes)
    assert msi.braced(msi.UPGRADE_CODE) == "{6E1F3F52-5B0E-4C6F-9D7A-2C0A3A0F7B41}"


@pytest.mark.parametrize(
    ("version", "expected"), [("1.2.3", "1.2.3"), ("1.2.3rc1", "1.2.3"), ("10.0.12", "10.0.12")]
)
def test_windows_installer_gets_three_numbers(msi: ModuleType, version: str, expected: str) -> None:
    assert msi.numeric_version(version) == expected


def test_version_without_three_numbers_is_refused(msi: ModuleType) -> None:
    with pytest.raises(ValueError, match="cannot compare"):
        msi.numeric_version("1.0")


def test_source_lists_every_file_once(msi: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "_internal/empty").mkdir(parents=True)
    for name in ("venue-agent.exe", "_internal/a.dll", "_internal/b.dll"):
        (tmp_path / name).touch()
    product = ET.fromstring(msi.source(tmp_path, "1.2.3"))[0]
    space = "{http://schemas.microsoft.com/wix/2006/wi}"
    files = [each.get("Source") for each in product.iter(f"{space}File")]
    assert files == ["files/venue-agent.exe", "files/_internal/a.dll", "files/_internal/b.dll"]
    conditions = {each.text for each in product.iter(f"{space}Condition")}
    assert "Privileged" in conditions
    properties = {each.get("Id"): each.get("Value") for each in product.iter(f"{space}Property")}
    assert properties["MsiHiddenProperties"] == "API_KEY_FILE"
    assert properties["ARPNOMODIFY"] == "1"


def test_each_action_is_in_the_sequence_after_its_rollback(msi: ModuleType) -> None:
    tables = msi.tables("1.2.3")
    order = [name for name, _, _ in rows(tables["InstallExecuteSequence"])]
    assert len(order) == len(set(order))
    types = {row[0]: int(row[1]) for row in rows(tables["CustomAction"])}
    assert types.keys() <= set(order)
    for first, second in (
        ("InstallInitialize", "RemoveExistingProducts"),
        ("RestoreService", "StopService"), ("StopService", "RemoveFiles"),
        ("InstallFiles", "UndoConfiguration"), ("UndoConfiguration", "Configure"),
        ("UndoService", "Configure"), ("UndoStart", "StartAgain"),
        ("StartAgain", "InstallFinalize"),
    ):  # fmt: skip
        assert order.index(first) < order.index(second), (first, second)
    rollbacks = {name for name, kind in types.items() if kind & ROLLBACK}
    assert rollbacks == {"RestoreService", "UndoStart", "UndoService", "UndoConfiguration"}


def test_only_the_action_with_the_key_file_hides_its_command_line(msi: ModuleType) -> None:
    actions = {row[0]: row for row in rows(msi.tables("1.2.3")["CustomAction"])}
    hidden = {name for name, row in actions.items() if int(row[1]) & msi.HIDE_TARGET}
    assert hidden == {"Configure"} == {n for n, r in actions.items() if "API_KEY_FILE" in r[3]}


def test_directory_without_the_program_is_refused(
    msi: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["build_msi.py", str(tmp_path), "1.2.3", str(tmp_path)])
    assert msi.main() == 1
    assert "has no venue-agent.exe" in capsys.readouterr().err


def test_winget_manifests_have_the_keys_that_their_schemas_require(
    msi: ModuleType, tmp_path: Path
) -> None:
    package = tmp_path / "package.msi"
    package.write_bytes(b"package")
    manifests = packaging_script("windows/winget.py").manifests(
        "1.2.3", package, "https://e.example/p.msi"
    )
    assert {each["ManifestType"] for each in manifests.values()} == REQUIRED.keys()
    for name, manifest in manifests.items():
        missing = (REQUIRED_ALWAYS | REQUIRED[manifest["ManifestType"]]) - manifest.keys()
        assert not missing, name
        assert all(manifest[key] for key in manifest)
    (installer,) = manifests["VenueAgent.VenueAgent.installer.yaml"]["Installers"]
    assert installer.keys() >= REQUIRED_INSTALLER
    assert re.fullmatch("[A-F0-9]{64}", installer["InstallerSha256"])
    assert installer["ProductCode"] == msi.braced(msi.product_code("1.2.3"))


def test_formula_pins_every_requirement_with_hashes(tmp_path: Path) -> None:
    homebrew = packaging_script("macos/homebrew.py")
    wheel = tmp_path / "venue_agent-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    text = homebrew.formula("1.2.3", wheel, f"https://e.example/{wheel.name}")
    pinned = set(re.findall(r"^ +([\w-]+)==", text, re.MULTILINE))
    assert pinned == homebrew.required_packages()
    assert {"cryptography", "zeroconf", "netifaces-plus", "markupsafe"} <= pinned
    assert not {"pywin32", "pyinstaller", "starlette"} & pinned
    assert text.count("--hash=sha256:") > len(pinned)
    assert f'sha256 "{homebrew.hashlib.sha256(b"wheel").hexdigest()}"' in text


def test_missing_requirement_is_named() -> None:
    with pytest.raises(ValueError, match="has no other"):
        packaging_script("macos/homebrew.py").pinned_entries(
            "one==1 \\\n    --hash=sha256:0\n", {"one", "other"}
        )


@pytest.fixture
def setup_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a service that cannot be started. Return the log of the setup actions."""

    def run() -> int:
        sys.stderr.write(f"ran {' '.join(sys.argv[1:])}\n")
        return 0 if sys.argv[2] == "uninstall" else 2

    monkeypatch.setattr(cli, "main", run)
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path))
    monkeypatch.setenv("PROGRAMDATA", str(tmp_path))
    (tmp_path / "venue-agent").mkdir()
    (tmp_path / "venue-agent/agent.log").write_text("why\n")
    return tmp_path / "Logs/venue-agent-setup.log"


def set_up(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["venue-agent.exe", "windows-setup", *words])
    code: int = packaging_script("entry.py")._set_up()
    return code


def test_log_of_a_failed_action_has_its_output_and_the_service_log(
    setup_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set_up(monkeypatch, "install", "--location", "x") == 2
    assert setup_log.read_text().splitlines() == [
        "ran service install --location x", "install: exit code 2", "agent.log: why",
    ]  # fmt: skip


def test_log_stays_after_undo_and_is_deleted_after_uninstall(
    setup_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set_up(monkeypatch, "undo", "--purge") == 0
    assert setup_log.read_text().splitlines() == [
        "ran service uninstall --purge", "undo: exit code 0",
    ]  # fmt: skip
    assert set_up(monkeypatch, "uninstall") == 0
    assert not setup_log.exists()
