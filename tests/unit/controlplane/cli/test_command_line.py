"""Tests of the errors of `venue-control`: wrong usage, and unexpected replies of a service."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire import routes
from agent.wire.codec import decode, encode
from agent.wire.operator_operations import ListDevicesReply, ReportDetailRequest
from controlplane.cli.arguments import client
from controlplane.cli.arguments.serve_settings import settings_of
from controlplane.cli.main import build_parser, main
from controlplane.client.calls import REPLY_MAX_BYTES
from controlplane.client.connection import connect, read_key
from controlplane.client.errors import CommandError, UsageError
from controlplane.client.operations import PAGES_MAX, OperationsClient
from controlplane.client.refusals import MESSAGE_MAX, refusal
from controlplane.client.waiting import RetryPolicy
from tests.unit.controlplane.cli.without_library import run_without

INSTANCE = "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["serve", "--port", "65536"],
        ["serve", "--port", "x"],
        ["serve", "--request-ttl", "0"],
        ["serve", "--request-ttl", "nan"],
        ["serve", "--rate", "inf"],
        ["serve", "--body-limit", "0"],
        ["request", INSTANCE],
        ["request", INSTANCE, "printers"],
        ["report", INSTANCE, "--json", "--html", "x"],
    ],
)
def test_a_usage_error_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == 2


def test_missing_service_libraries_are_reported_with_the_install_command() -> None:
    result = run_without("sqlalchemy", "serve")
    assert result.returncode == 1
    text, advice = result.stderr.splitlines()
    assert text == (
        "venue-control: this command requires the libraries of the service, and sqlalchemy is"
        " missing"
    )
    assert advice == "Install them: pip install 'venue-agent[controlplane]'"


def test_commands_without_a_database_do_not_import_sqlalchemy() -> None:
    """The import would take longer than all other imports together."""
    modules = {command.function.partition(":")[0] for command in client.COMMANDS} | {"service"}
    code = (
        "import importlib, sys\n"
        "sys.modules['sqlalchemy'] = None\n"
        "for name in sys.argv[1:]: importlib.import_module('controlplane.cli.' + name)"
    )
    subprocess.run([sys.executable, "-c", code, *modules], check=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "nope", "--api-key-file", __file__], "not an API key"),
        (["devices", "--base-url", "http://ops.example.com"], "refusing http"),
        (["devices", "--base-url", "ftp://x"], "not the address"),
        (["devices", "--base-url", "http://[x"], "not the address"),
        (["devices", "--api-key-file", "/nonexistent/key"], "cannot read the API key"),
        (["devices"], "there is no API key"),
        (["keys", "create", "--count", "3"], "require --out"),
        (["keys", "create", "--locations-file", "/nonexistent/x", "--out", "x"], "cannot read the"),
        (["report", "--api-key-file", "F"], "give either the id of a report"),
        (["report", INSTANCE, "--latest", "bar", "network"], "give either the id of a report"),
        (["request", "bar", "network", "--out", "x"], "require --wait"),
        (["keys", "create", "--location", ""], "a location id has"),
        (["keys", "list", "--database", "nosuch://x"], "cannot use the database"),
        (
            ["keys", "list", "--database", "/dev/null/x.db"],
            "there is no database at /dev/null/x.db",
        ),
        (["keys", "create", "--database", "/dev/null/x.db"], "cannot use the database"),
        (["keys", "list", "--database", "/nonexistent/x.db"], "there is no database at"),
        (["keys", "revoke", INSTANCE, "--database", "/nonexistent/x.db"], "there is no database"),
        (["keys", "list", "--database", "sqlite://"], "needs the path of a file"),
        (["serve", "--tracker-url", "mailto:x"], "not an http or https address"),
        (["serve", "--tracker-url", "http://[x"], "not an http or https address"),
        (["serve", "--host", "203.0.113.1", "--port", "0"], "cannot listen"),
    ],
)
def test_errors_of_options_and_environment_have_at_most_two_lines(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VENUE_CONTROL_API_KEY", raising=False)
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.startswith("venue-control: ")
    assert len(message.splitlines()) <= 2


@pytest.mark.parametrize("words", ["run --once", "export", "export shop.ndjson", "rebuild"])
def test_sandbox_commands_do_not_create_a_database_at_a_mistyped_path(
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sandbox", *words.split(), "--database", "srevice.db"]) == 2
    assert "there is no database at srevice.db" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_options_of_serve_become_settings() -> None:
    options = build_parser().parse_args(
        "serve --online-window 10 --request-ttl 20 --challenge-ttl 30 --body-limit 40 --rate 50 "
        "--burst 60 --tracker-url http://127.0.0.1/x --tracker-attempts 7".split()
    )
    settings = settings_of(options)
    assert (settings.online_window_s, settings.request_ttl_s, settings.challenge_ttl_s) == (
        10, 20, 30,
    )  # fmt: skip
    assert (settings.body_limit_bytes, settings.rate_per_s, settings.burst) == (40, 50, 60)
    assert (settings.tracker_url, settings.tracker_attempts_max) == ("http://127.0.0.1/x", 7)


def test_a_key_file_takes_precedence_over_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("  from-file \n")
    environment = {"VENUE_CONTROL_API_KEY": "from-environment"}
    assert read_key(str(path), environment) == "from-file"
    assert read_key(None, environment) == "from-environment"
    path.write_text("two words")
    with pytest.raises(UsageError, match="not an API key"):
        read_key(str(path), {})


def test_an_https_address_of_another_host_is_accepted() -> None:
    with connect("https://ops.example.com/base/", None, {"VENUE_CONTROL_API_KEY": "k"}) as client:
        assert isinstance(client, OperationsClient)


def client_of(answer: Callable[[httpx2.Request], httpx2.Response]) -> OperationsClient:
    transport = httpx2.MockTransport(answer)
    return OperationsClient(
        httpx2.Client(transport=transport, base_url="https://ops.example.com/base"),
        RetryPolicy(total_wait_max_s=0),
    )


def test_paths_are_appended_to_the_base_address() -> None:
    requests: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(str(request.url))
        return httpx2.Response(200, json={"devices": [], "nextCursor": None, "later": 1})

    assert client_of(answer).devices() == ([], False)
    assert requests == [f"https://ops.example.com/base{routes.LIST_DEVICES}"]


def test_only_a_limited_number_of_pages_of_an_endless_list_is_read() -> None:
    reply = encode(ListDevicesReply(devices=(), next_cursor="more")).decode()
    calls: list[int] = []

    def answer(_: httpx2.Request) -> httpx2.Response:
        calls.append(1)
        return httpx2.Response(200, content=reply)

    assert client_of(answer).devices() == ([], True)
    assert len(calls) == PAGES_MAX


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx2.Response(200, content=b"<html>"), "does not fit the contract"),
        (httpx2.Response(200, json={"devices": 1}), "does not fit the contract: devices"),
        (httpx2.Response(200, content=b"x" * (REPLY_MAX_BYTES + 1)), "larger than"),
        (httpx2.Response(302, headers={"Location": "http://evil"}), "answered 302"),
        (httpx2.Response(503, content=b"busy"), "answered 503"),
    ],
)
def test_an_invalid_reply_raises_a_command_error(answer: httpx2.Response, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        client_of(lambda _: answer).devices()


def test_the_error_for_an_unreachable_service_contains_its_address() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("[Errno 111] Connection refused", request=request)

    with pytest.raises(CommandError, match=r"cannot reach https://ops\.example\.com"):
        client_of(refuse).report(decode(f'{{"reportId":"{INSTANCE}"}}', ReportDetailRequest))


def test_output_of_a_service_cannot_control_the_terminal() -> None:
    body = json.dumps({"detail": "\x1b[2Jgone\r\nforged line", "code": "x\x07"}).encode()
    message = str(refusal(400, body))
    assert message.isprintable()
    assert "gone" in message


@given(st.integers(100, 599), st.binary(max_size=300))
def test_the_message_for_any_error_body_is_one_line_of_limited_length(
    status: int, body: bytes
) -> None:
    message = str(refusal(status, body))
    assert message.startswith(f"the service answered {status}")
    assert len(message) <= MESSAGE_MAX
    assert "\n" not in message
