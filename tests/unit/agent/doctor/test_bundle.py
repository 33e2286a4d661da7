"""Tests that a support bundle contains the files that support needs, and no secret."""

import json
import sqlite3
import stat
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters.accounts.privileges import replace_file
from agent.adapters.identity import KEY_NAME, IdentityFile
from agent.adapters.storage.state import StateDirectory
from agent.config.file import load
from agent.config.model import Config
from agent.doctor.bundle import FreshReport, write_bundle
from agent.doctor.context import Context
from agent.doctor.document import document_of
from agent.errors import AgentError
from agent.redaction.redactor import Redactor
from agent.redaction.shapes import MASK
from agent.wire.payloads.history import History
from tests.fixtures import payloads
from tests.unit.agent.histories import NOW, SINCE, incident, store

API_KEY = "vk_live_9f8e7d6c5b4a"
PROXY_PASSWORD = "pr0xy/pass wörd"
QUOTED_PASSWORD = "pr0xy%2Fpass%20w%C3%B6rd"


@pytest.fixture
def device(tmp_path: Path) -> Context:
    """A device with a secret in each file and setting whose text could reach the bundle."""
    state = StateDirectory(tmp_path / "state")
    state.prepare()
    IdentityFile(state).load_or_create()
    pem = (state.path / KEY_NAME).read_text()
    (tmp_path / "key").write_text(API_KEY)
    config = tmp_path / "config.toml"
    config.write_text(
        f'[service]\nbase_url = "https://ops.example.com"\nlocation_id = "x"\n'
        f'api_key_file = "{tmp_path / "key"}"\nproxy = "http://user:{QUOTED_PASSWORD}@proxy:3128"\n'
        f'# the key is {API_KEY}\n[device]\nstate_dir = "{state.path}"\n'
    )
    report = json.dumps(
        {"note": f"Authorization: Bearer {API_KEY}", "pem": pem, "p": PROXY_PASSWORD}
    )
    state.quarantine("rejected-1.json", report.encode())
    state.quarantine("refused-2.json", b"not even text \xff" + API_KEY.encode())
    IdentityFile(state).quarantine_file()
    IdentityFile(state).load_or_create()
    refused = incident("service-refuses", NOW, 60, f"HTTP 401: the key {API_KEY} is unknown")
    store(state, History(SINCE, (refused,)))
    with sqlite3.connect(state.path / "agent.db") as database:
        database.execute(
            "INSERT INTO outbox VALUES ('r-1', NULL, 'b', 'network', 'completed', 0, ?, ?)",
            (datetime.now(UTC).isoformat(), report.encode()),
        )
    database.close()
    return Context(
        config_path=config,
        environment={"HTTPS_PROXY": f"http://user:{QUOTED_PASSWORD}@proxy:3128"},
        config=load(Config, config, {}).config,
        state=state,
        api_key=API_KEY,
    )


def bundle_of(
    context: Context, path: Path, *reports: FreshReport, texts: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Write a bundle to ``path``. Return the content of its files by name."""
    document = document_of((), made_at="2026-01-01T00:00:00+00:00", duration_s=0)
    write_bundle(
        path,
        context,
        document,
        lambda content: replace_file(path, content),
        texts=texts or {},
        reports=reports,
    )
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_bundle_contains_the_files_that_support_needs(device: Context, tmp_path: Path) -> None:
    members = bundle_of(device, tmp_path / "bundle.zip")
    names = "doctor.json config.toml status.json history.json timeline.json log.txt"
    assert set(names.split()) <= set(members)
    (refused,) = json.loads(members["timeline.json"])["incidents"]
    assert refused["cause"] == "service-refuses"
    folders = sorted(name.partition("/")[0] for name in members if "/" in name)
    assert folders == ["outbox", "quarantine", "quarantine"]
    assert 'location_id = "x"' in members["config.toml"]


def test_a_bundle_contains_no_secrets(device: Context, tmp_path: Path) -> None:
    members = bundle_of(device, tmp_path / "bundle.zip")
    assert device.state is not None
    keys = [device.state.path / KEY_NAME, *device.state.quarantine_path.glob(f"*{KEY_NAME}")]
    assert len(keys) == 2
    secrets = [API_KEY, PROXY_PASSWORD, QUOTED_PASSWORD]
    for key in keys:
        secrets += [line for line in key.read_text().splitlines() if "-----" not in line]
    for name, text in members.items():
        for secret in secrets:
            assert secret not in text, f"{name} holds {secret}"
        assert "PRIVATE KEY" not in text


BROKEN_CONFIG = f"""
[service]
base_url = "https://ops.example.com"
api_key = "{API_KEY}
proxy = "http://user:p/ss@word#1@proxy:3128
other_proxy = user:sche/me@proxy:3128
"http_proxy" = 'http://us%65r:b lanks@proxy:3128'
passwd = \'\'\'
first-line
second-line\'\'\'
location_id = "kept"
# the old password was rem4rk
#password = "comm3nted"
[service.secrets]
anything = "in-a-section"
"""
BROKEN_CONFIG_SECRETS = (
    API_KEY, "p/ss", "word#1", "sche/me", "us%65r", "lanks", "first-line", "second-line", "rem4rk",
    "comm3nted", "in-a-section",
)  # fmt: skip


def test_a_bundle_contains_no_secrets_of_an_invalid_configuration(
    device: Context, tmp_path: Path
) -> None:
    assert device.config_path is not None
    device.config_path.write_text(BROKEN_CONFIG)
    broken = Context(device.config_path, {"ALL_PROXY": "user:al/l@proxy"}, state=device.state)
    members = bundle_of(broken, tmp_path / "bundle.zip")
    for name, text in members.items():
        for secret in (*BROKEN_CONFIG_SECRETS, "al/l"):
            assert secret not in text, f"{name} holds {secret}"
    text = members["config.toml"]
    for part in ('base_url = "https://ops.example.com"', 'location_id = "kept"', "proxy:3128"):
        assert part in text
    assert len(text.splitlines()) > 10


def test_a_bundle_is_readable_by_its_owner_only(device: Context, tmp_path: Path) -> None:
    bundle_of(device, tmp_path / "bundle.zip")
    assert stat.S_IMODE((tmp_path / "bundle.zip").stat().st_mode) == 0o600


def test_a_bundle_is_created_without_configuration_and_state(tmp_path: Path) -> None:
    members = bundle_of(Context(config_path=tmp_path / "none.toml"), tmp_path / "bundle.zip")
    assert "cannot be read" in members["config.toml"]


def test_a_bundle_that_cannot_be_written_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"cannot be written: No such file"):
        bundle_of(Context(config_path=tmp_path / "none.toml"), tmp_path / "absent" / "b.zip")


def test_fresh_reports_and_texts_of_a_bundle_contain_no_secret(
    device: Context, tmp_path: Path
) -> None:
    payload = payloads.small_venue()
    with_secrets = payload.model_copy(
        update={
            "limitations": (
                f"it sent Bearer {API_KEY} and http://user:{QUOTED_PASSWORD}@proxy:3128",
            )
        }
    )
    text = f"the key is {API_KEY}, the proxy user:{QUOTED_PASSWORD}@proxy:3128\n"
    members = bundle_of(
        device,
        tmp_path / "bundle.zip",
        FreshReport("network", with_secrets),
        FreshReport("application", None, f"password={PROXY_PASSWORD}"),
        texts={"status.txt": text},
    )
    assert next(iter(members)) == "status.txt", "files for users must come first"
    assert json.loads(members["reports/network.json"])["printers"]
    assert "Kitchen" in members["reports/network.html"]
    assert members["reports/application.txt"].startswith("left out: ")
    for name, text in members.items():
        for secret in (API_KEY, PROXY_PASSWORD, QUOTED_PASSWORD):
            assert secret not in text, f"{name} holds {secret}"


NO_STARS = st.characters(exclude_characters=MASK)


@given(st.text(max_size=300), st.text(NO_STARS, min_size=4, max_size=40))
def test_a_known_secret_is_always_redacted(text: str, secret: str) -> None:
    assert secret not in Redactor([secret]).redact(f"{text}{secret}{text}")
