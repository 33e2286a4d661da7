"""The facts about the kiosk's browser, for valid, invalid, missing and endless answers."""

import contextlib
import ipaddress
import itertools
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.wire.codec import validate
from agent.wire.payloads.application import BrowserField
from agent.wire.vocabulary import BrowserFieldKey
from collectors.application import collector
from collectors.application.collector import take_snapshot
from collectors.application.kiosk.expression import VISIBILITY
from collectors.application.kiosk.fields import BROWSER_KEYS, parse_values
from collectors.application.kiosk.kiosk import parse_page_ids
from collectors.application.kiosk.session import parse_answer
from collectors.application.kiosk.source import read_kiosk_browser
from collectors.contract import ApplicationFacts, Field
from collectors.shared.devtools import parse_debug_url
from tests.fakes.devtools import (
    PAGE_ADDRESS,
    PAGE_TITLE,
    ConnectionHandler,
    answer_with,
    devtools_port,
)
from tests.paths import ROOT
from tests.sizes import examples
from tests.unit.collectors.application.fixtures import RecordingRun
from tests.unit.collectors.application.linux.test_disks import json_values

ANSWERS = json.dumps({key: {"value": key} for key in BROWSER_KEYS})


@pytest.fixture(autouse=True)
def _long_grace_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a source enough time to return the reason for its delay, even on a busy machine."""
    monkeypatch.setattr(collector, "GRACE_S", 300)


def collect(url: str, max_duration_s: float = 5) -> ApplicationFacts:
    return take_snapshot([read_kiosk_browser.bind(url)], max_duration_s, RecordingRun())


def assert_fits_the_contract(fields: tuple[Field, ...]) -> None:
    assert [field.key for field in fields] == list(BROWSER_KEYS)
    for field in fields:
        validate({k: v for k, v in asdict(field).items() if v is not None}, BrowserField)


def test_browser_keys_equal_the_keys_of_the_contract() -> None:
    assert set(BROWSER_KEYS) == set(get_args(BrowserFieldKey))
    assert len(BROWSER_KEYS) == 34


def test_each_key_has_a_reason_without_a_kiosk() -> None:
    facts = collect("")
    assert_fits_the_contract(facts.browser_fields)
    for field in facts.browser_fields:
        assert (field.status, field.reason) == ("not-applicable", "no kiosk browser is configured")
    assert not facts.failures


def test_facts_of_a_responding_browser_are_complete() -> None:
    with devtools_port({"A": answer_with(ANSWERS)}) as port:
        facts = collect(port.url)
    assert_fits_the_contract(facts.browser_fields)
    assert {field.value for field in facts.browser_fields} == set(BROWSER_KEYS)
    assert PAGE_ADDRESS not in repr(facts)
    assert PAGE_TITLE not in repr(facts)
    methods = [method for _, method, _ in port.commands]
    assert methods == ["Page.getFrameTree", "Page.createIsolatedWorld", "Runtime.evaluate"]
    params = port.commands[-1][2]
    assert params["contextId"] == 7
    assert params["userGesture"] is False


def with_visibility(
    visible: bool, focused: bool, name: str
) -> Callable[..., dict[str, object] | None]:
    """Return the answers of a page with this visibility. The value of each key is ``name``."""
    values = json.dumps({key: {"value": name} for key in BROWSER_KEYS})

    def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
        is_visibility_query = params.get("expression") == VISIBILITY
        return answer_with(json.dumps([visible, focused]) if is_visibility_query else values)(
            method, params
        )

    return answer


@pytest.mark.medium
def test_the_visible_and_focused_page_is_read_if_several_pages_are_open() -> None:
    pages = {
        "HIDDEN": with_visibility(False, False, "hidden"),
        "FROZEN": lambda _method, _params: None,
        "VISIBLE": with_visibility(True, False, "visible"),
        "FOCUSED": with_visibility(True, True, "focused"),
    }
    with devtools_port(pages) as port:
        facts = collect(port.url)
    assert {field.value for field in facts.browser_fields} == {"focused"}


def test_other_pages_get_no_commands_if_the_first_page_is_visible_and_focused() -> None:
    pages = {
        "FOCUSED": with_visibility(True, True, "focused"),
        "FROZEN": lambda _method, _params: None,
    }
    with devtools_port(pages) as port:
        facts = collect(port.url)
    assert {field.value for field in facts.browser_fields} == {"focused"}
    assert {page for page, _, _ in port.commands} == {"FOCUSED"}


def no_handler(_: socket.socket, __: bytes) -> bool:
    return False


def stream_handler(chunk: bytes, first: bytes = b"", *, start: bytes = b"GET") -> ConnectionHandler:
    """Return a handler for requests that begin with ``start``. It sends ``first``, and then
    ``chunk`` without end.
    """

    def handler(connection: socket.socket, data: bytes) -> bool:
        if not data.startswith(start):
            return False
        with contextlib.suppress(OSError):
            connection.sendall(first)
            for _ in itertools.repeat(None):
                connection.sendall(chunk)
        return True

    return handler


WEBSOCKET = b"GET /devtools/page/"
CASES: dict[str, tuple[ConnectionHandler, str]] = {
    "garbage instead of HTTP": (
        stream_handler(b"\xff\x00garbage" * 1000),
        "did not answer with HTTP",
    ),
    "an endless head": (
        stream_handler(b"X: y\r\n", b"HTTP/1.1 200 OK\r\n"),
        "did not answer with HTTP",
    ),
    "an endless body": (stream_handler(b"x" * 4096, b"HTTP/1.1 200 OK\r\n\r\n"), "sent more than"),
    "an endless handshake": (
        stream_handler(b"X: y\r\n" * 99, b"HTTP/1.1 101 x\r\n", start=WEBSOCKET),
        "",
    ),
    "garbage instead of a handshake": (
        stream_handler(b"\xff\x00" * 500, start=WEBSOCKET),
        "WebSocket",
    ),
}
"""What the DevTools port sends, and a part of the expected reason ("" if any reason is correct)."""


@pytest.mark.parametrize("name", CASES)
def test_a_misbehaving_devtools_port_is_reported(name: str) -> None:
    handler, reason = CASES[name]
    assert_fails({"A": answer_with(ANSWERS)}, handler, reason)


def page_list_handler(reply: bytes) -> ConnectionHandler:
    """Return a handler that answers the request for the list of pages, and then disconnects."""

    def handler(connection: socket.socket, data: bytes) -> bool:
        if data.startswith(b"GET /json/list "):
            connection.sendall(reply)
        return data.startswith(b"GET /json/list ")

    return handler


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered with status 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]", "ended its answer early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]", "ended its answer early"),
        (b"HTTP/1.1 200 OK\r\n", "did not answer with HTTP"),
        (b"", "did not answer with HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n[]", "has no page open"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
            "has no page open",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]more", "has no page open"),
    ],
)
def test_each_unusable_list_of_pages_is_reported_with_its_reason(reply: bytes, reason: str) -> None:
    assert_fails({"A": answer_with(ANSWERS)}, page_list_handler(reply), reason)


@pytest.mark.medium
def test_silent_devtools_port_fails_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        facts = collect(f"http://127.0.0.1:{silent.getsockname()[1]}", 1.0)
    assert_all_failed(facts, "did not answer in time")


@pytest.mark.medium
def test_a_page_that_never_answers_is_reported() -> None:
    def busy(method: str, params: dict[str, object]) -> dict[str, object] | None:
        return None if method == "Runtime.evaluate" else answer_with("")(method, params)

    assert_fails({"A": busy}, no_handler, "did not answer in time")


@pytest.mark.parametrize("value", [None, 7, "", "no json", "[]", "[" * 100_000])
def test_an_invalid_answer_of_a_page_is_reported(value: object) -> None:
    assert_fails({"A": answer_with(value)}, no_handler, "")


def test_a_browser_without_an_open_page_is_reported() -> None:
    assert_fails({}, no_handler, "has no page open")


def test_a_closed_devtools_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert_all_failed(collect(url), "no browser listens at kiosk_debug_url")


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1:9222",
        "http://till.example:9222",
        "http://127.0.0.1.example:9222",
        "http://0.0.0.0:9222",
        "http://[::ffff:192.0.2.1]:9222",
        "http://user:pw@127.0.0.1:9222",
        "https://127.0.0.1:9222",
        "http://127.0.0.1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:secret",
        "http://[secret",
        "file:///etc/passwd",
    ],
)
def test_debug_urls_that_are_invalid_or_not_loopback_are_not_queried(url: str) -> None:
    facts = collect(url)
    assert_all_failed(facts, "")
    assert "passwd" not in repr(facts)


@pytest.mark.parametrize("url", ["http://localhost:9", "http://127.0.0.1:9", "http://[::1]:9/"])
def test_each_spelling_of_loopback_is_accepted(url: str) -> None:
    assert parse_debug_url(url).port == 9


@given(
    st.text()
    | st.from_regex(
        r"http://(localhost|(127|10)(\.\d{1,3}){3}|\[(::1|fe80::1)\]|till)\.?:9", fullmatch=True
    )
)
def test_any_debug_url_is_loopback_or_refused(url: str) -> None:
    try:
        host = parse_debug_url(url).host
    except ValueError:
        return
    assert ipaddress.ip_address(host).is_loopback


# ---------------------------------------------------------------------------- parsers


def field_of(key: str, entry: object) -> Field:
    fields = {field.key: field for field in parse_values(json.dumps({key: entry}))}
    return fields[key]


def test_values_are_bounded_in_utf_16_code_units() -> None:
    assert len(str(field_of("browser.userAgent", {"value": "x" * 500}).value)) == 256
    emoji = str(field_of("browser.userAgent", {"value": "\U0001f600" * 500}).value)
    assert len(emoji.encode("utf-16-le")) // 2 == 256
    languages = field_of("browser.languages", {"value": ["de"] * 40}).value
    assert languages == ("de",) * 32


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"value": None}, "unsupported"),
        ({"error": "NotAllowedError"}, "permission-denied"),
        ({"error": "SecurityError"}, "permission-denied"),
        ({"error": "NotSupportedError"}, "unsupported"),
        ({"error": "TypeError"}, "unsupported"),
        ({"error": "TimeoutError"}, "collection-failed"),
        ({"error": {"x": 1}}, "collection-failed"),
        ({"value": {"x": 1}}, "collection-failed"),
        ({"value": [1]}, "collection-failed"),
        ({"value": 1e308}, "collection-failed"),
        ("x", "collection-failed"),
        (None, "collection-failed"),
    ],
)
def test_missing_values_have_a_status(entry: object, status: str) -> None:
    field = field_of("browser.batteryCharging", entry)
    assert field.status == status
    assert field.value is None


def test_values_missing_on_a_page_without_https_have_a_reason() -> None:
    text = json.dumps(
        {"browser.secureContext": {"value": False}, "browser.usbAuthorizedDevices": {"value": None}}
    )
    reasons = {field.key: field.reason for field in parse_values(text)}
    assert "without https" in str(reasons["browser.usbAuthorizedDevices"])


entries = st.dictionaries(st.sampled_from(["value", "error"]), json_values)


@settings(max_examples=examples(40))
@given(st.dictionaries(st.sampled_from(BROWSER_KEYS), entries | json_values, max_size=5))
def test_any_answer_of_the_page_fits_the_contract(page: dict[str, object]) -> None:
    assert_fits_the_contract(parse_values(json.dumps(page)))


@given(st.text())
def test_any_text_of_the_page_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_values(text)


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_list_of_targets_is_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse_page_ids(body)


def test_only_valid_pages_are_selected_from_devtools_targets() -> None:
    targets = [
        {"type": "page", "id": "A", "url": "https://x"},
        {"type": "page", "id": "../../json/close/A"},
        {"type": "page", "id": "D", "url": "devtools://devtools/x"},
        {"type": "iframe", "id": "I"},
        *({"type": "page", "id": f"P{n}"} for n in range(40)),
    ]
    ids = parse_page_ids(json.dumps(targets).encode())
    assert ids[:2] == ("A", "P0")
    assert len(ids) == 16


@given(st.binary() | json_values.map(lambda value: json.dumps({"id": 1, "result": value}).encode()))
def test_any_devtools_message_is_parsed_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        answer = parse_answer(data, 1)
        assert answer is None or isinstance(answer, dict)


def test_the_error_for_an_error_answer_does_not_contain_the_message_of_the_answer() -> None:
    data = json.dumps({"id": 1, "error": {"code": -32000, "message": PAGE_ADDRESS}}).encode()
    with pytest.raises(ValueError, match="-32000") as refused:
        parse_answer(data, 1)
    assert "secret" not in str(refused.value)


def assert_fails(pages: dict[str, object], handler: ConnectionHandler, reason: str) -> None:
    """Check that no fact is available from a browser with these pages."""
    with devtools_port(pages, handler) as port:
        facts = collect(port.url, 1.5)
        assert_all_failed(facts, reason)


def assert_all_failed(facts: ApplicationFacts, reason: str) -> None:
    assert_fits_the_contract(facts.browser_fields)
    assert {field.status for field in facts.browser_fields} == {"collection-failed"}
    assert reason in str(facts.browser_fields[0].reason)
    assert [failure.step for failure in facts.failures] == ["kiosk"]
    assert "secret" not in repr(facts)


def test_a_machine_without_a_kiosk_does_not_load_the_websocket_library() -> None:
    script = (
        "import sys; from collectors.application.deadline import Deadline;"
        " from collectors.application.kiosk.source import read_kiosk_browser, read_kiosk_page;"
        " [read(Deadline.after(5), '') for read in (read_kiosk_browser, read_kiosk_page)];"
        " sys.exit('websockets' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
