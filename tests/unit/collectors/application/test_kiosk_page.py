"""The facts about the state of the kiosk's page, and about the browser's policies for it."""

import contextlib
import json
import plistlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.collector import take_snapshot
from collectors.application.kiosk.fields import PAGE_KEYS, page_reading
from collectors.application.kiosk.policies import names_in_registry, parse_policies
from collectors.application.kiosk.source import read_kiosk_page, read_kiosk_policies
from collectors.contract import Field
from tests.fakes.devtools import PAGE_ADDRESS, answer_with, devtools_port
from tests.unit.collectors.application.fixtures import RecordingRun
from tests.unit.collectors.application.linux.test_disks import json_values

WORKING: dict[str, object] = {
    "kiosk.drawing": True,
    "kiosk.painted": True,
    "kiosk.localNetworkPermission": "granted",
    "kiosk.loopbackPermission": "prompt",
}


def page_values(**changed: object) -> str:
    """Return the answer of a page with the values of ``WORKING``, except for ``changed``."""
    entries = {key: {"value": value} for key, value in WORKING.items()}
    return json.dumps(entries | {f"kiosk.{key}": entry for key, entry in changed.items()})


def state_of(url: str, max_duration_s: float = 5) -> dict[str, Field]:
    facts = take_snapshot([read_kiosk_page.bind(url)], max_duration_s, RecordingRun())
    assert not facts.browser_fields
    assert "secret" not in repr(facts)
    assert sorted(field.key for field in facts.fields) == sorted(PAGE_KEYS)
    return {field.key: field for field in facts.fields}


def values_of(state: dict[str, Field]) -> dict[str, object]:
    return {key: field.value for key, field in state.items() if field.status == "available"}


def test_state_of_a_working_page_is_reported() -> None:
    with devtools_port({"A": answer_with(page_values())}) as port:
        state = state_of(port.url)
    working_state = {"kiosk.crashed": False, "kiosk.responding": True, "kiosk.errorPage": False}
    assert values_of(state) == {**WORKING, **working_state}
    assert port.commands[0][1] == "Inspector.enable"


def test_state_of_a_blank_page_is_reported() -> None:
    blank_page = page_values(drawing={"value": False}, painted={"value": False})
    with devtools_port({"A": answer_with(blank_page)}) as port:
        state = state_of(port.url)
    assert (state["kiosk.drawing"].value, state["kiosk.painted"].value) == (False, False)
    assert state["kiosk.responding"].value is True


@pytest.mark.parametrize(
    "frame", [{"url": "chrome-error://chromewebdata/"}, {"unreachableUrl": PAGE_ADDRESS}]
)
def test_permissions_of_an_error_page_are_not_reported(frame: dict[str, str]) -> None:
    with devtools_port({"A": answer_with(page_values(), **frame)}) as port:
        state = state_of(port.url)
    assert state["kiosk.errorPage"].value is True
    for key in ("kiosk.localNetworkPermission", "kiosk.loopbackPermission"):
        assert state[key].status == "not-applicable"
        assert state[key].reason == "an error page is shown"


def test_crashed_page_is_not_queried() -> None:
    event = "Inspector.targetCrashed"
    with devtools_port({"A": answer_with(page_values())}, event=event) as port:
        state = state_of(port.url)
    assert values_of(state) == {"kiosk.crashed": True, "kiosk.responding": False}
    assert state["kiosk.drawing"].reason == "the page has crashed"
    assert [method for _, method, _ in port.commands] == ["Inspector.enable"]


def only_the_browser_answers(method: str, _: dict[str, object]) -> dict[str, object] | None:
    return {} if method == "Inspector.enable" else None


@pytest.mark.medium
def test_a_page_that_does_not_respond_has_not_crashed() -> None:
    with devtools_port({"A": only_the_browser_answers}) as port:
        state = state_of(port.url)
    assert values_of(state) == {"kiosk.crashed": False, "kiosk.responding": False}
    assert state["kiosk.errorPage"].reason == "the page did not answer in time"


@pytest.mark.medium
def test_a_short_deadline_gives_collection_failed_instead_of_unresponsive() -> None:
    with devtools_port({"A": only_the_browser_answers}) as port:
        state = state_of(port.url, 1.0)
    assert {field.status for field in state.values()} == {"collection-failed"}


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"error": "TypeError"}, "unsupported"),
        ({"error": "PageHidden"}, "not-applicable"),
        ({"error": "TimeoutError"}, "collection-failed"),
    ],
)
def test_each_drawing_error_has_its_own_status(entry: object, status: str) -> None:
    with devtools_port({"A": answer_with(page_values(drawing=entry))}) as port:
        assert state_of(port.url)["kiosk.drawing"].status == status


def test_page_state_and_policies_do_not_apply_without_a_kiosk(tmp_path: Path) -> None:
    for field in (*state_of("").values(), policies_field("", tmp_path)):
        assert (field.status, field.reason) == ("not-applicable", "no kiosk browser is configured")


def policies_field(url: str, root: Path) -> Field:
    (field,) = take_snapshot([read_kiosk_policies.bind(url, root)], 5, RecordingRun()).fields
    return field


def write_policies(root: Path, name: str, text: str) -> None:
    folder = root / "etc/opt/chrome/policies/managed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_missing_local_network_policies_are_an_empty_list(tmp_path: Path) -> None:
    assert policies_field("http://127.0.0.1:9", tmp_path).value == ()
    write_policies(tmp_path, "other.json", '{"HomepageLocation": "https://till.example/secret"}')
    assert policies_field("http://127.0.0.1:9", tmp_path).value == ()


def test_names_but_not_values_of_local_network_policies_are_reported(tmp_path: Path) -> None:
    write_policies(tmp_path, "a.json", '{"LocalNetworkAllowedForUrls": ["https://secret"]}')
    write_policies(tmp_path, "b.json", '{"LoopbackNetworkBlockedForUrls": ["*"], "Other": 1}')
    write_policies(tmp_path, "c.json.bak", "no policy")
    preferences = tmp_path / "Library/Managed Preferences"
    preferences.mkdir(parents=True)
    macos_policies = {"LocalNetworkAccessAllowedForUrls": ["https://secret"]}
    (preferences / "com.google.Chrome.plist").write_bytes(plistlib.dumps(macos_policies))
    field = policies_field("http://127.0.0.1:9", tmp_path)
    assert field.value == (
        "LocalNetworkAccessAllowedForUrls",
        "LocalNetworkAllowedForUrls",
        "LoopbackNetworkBlockedForUrls",
    )
    assert "secret" not in repr(field)


def fake_registry(keys: dict[str, tuple[list[str], list[str]]]) -> SimpleNamespace:
    """Return a fake winreg. ``keys`` maps a path to the names of its subkeys and of its values."""

    def open_key(_: int, path: str) -> contextlib.nullcontext[str]:
        if path not in keys:
            raise FileNotFoundError(path)
        return contextlib.nullcontext(path)

    return SimpleNamespace(
        HKEY_LOCAL_MACHINE=1,
        OpenKey=open_key,
        QueryInfoKey=lambda path: (*map(len, keys[path]), 0),
        EnumKey=lambda path, index: keys[path][0][index],
        EnumValue=lambda path, index: (keys[path][1][index], "https://secret", 1),
    )


def test_names_of_policies_are_read_from_the_registry_of_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists, values = ["LocalNetworkAllowedForUrls"], ["LoopbackNetworkFlag", "HomepageLocation"]
    registry = fake_registry({r"SOFTWARE\Policies\Microsoft\Edge": (lists, values)})
    monkeypatch.setitem(sys.modules, "winreg", registry)
    assert list(names_in_registry()) == [*lists, *values]


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "null"])
def test_invalid_policy_file_has_a_reason(tmp_path: Path, text: str) -> None:
    write_policies(tmp_path, "a.json", text)
    field = policies_field("http://127.0.0.1:9", tmp_path)
    assert (field.status, field.reason) == (
        "collection-failed",
        "a policy file of the browser cannot be read",
    )


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()), st.booleans())
def test_any_policy_file_is_read_or_refused(data: bytes, is_json: bool) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_policies(data, is_json=is_json), dict)


@given(
    st.dictionaries(st.sampled_from(["id", "url", "unreachableUrl"]), json_values),
    st.dictionaries(st.sampled_from(PAGE_KEYS), json_values).map(json.dumps) | st.text(),
)
def test_any_page_has_every_key_or_is_refused(frame: dict[str, object], answer: str) -> None:
    with contextlib.suppress(ValueError):
        keys = [field.key for field in page_reading(frame, answer).fields]
        assert sorted(keys) == sorted(PAGE_KEYS)
