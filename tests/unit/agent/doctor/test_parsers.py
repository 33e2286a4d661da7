"""Tests of doctor's parsers of untrusted input: replies, process lists, systemd units, ARP tables
and certificates.
"""

import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from agent.doctor.certificate import Certificate, parse_certificate
from agent.doctor.checks import application
from agent.doctor.checks.application import check_cups, request_browser
from agent.doctor.checks.connection import STRICT_ERRORS, compare_clocks, untrusted_outcome
from agent.doctor.checks.network import parse_unanswered_arp
from agent.doctor.probe import ProxyRefused, open_tunnel, request, request_date
from agent.doctor.public_status import UnitFacts, is_agent, other_agents, parse_systemctl
from agent.rules.route import Proxy, Route
from tests.fakes.tls_front import Authority, make_authority, server_context
from tests.paths import FIXTURES
from tests.unit.collectors.shared.spooler import spooler

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


ROUTE = Route(is_tls=False, host="ops.example", port=80, path="", proxy=None, why="")
PROXY = Proxy("http", "proxy.example", 3128, authorization="Basic x")

T = TypeVar("T")


def call_with_reply(answer: bytes, ask: Callable[[socket.socket], T], sent: bytes = b"") -> T:
    """Return the result of ``ask`` if the peer sends ``answer`` and then closes the connection.

    Check that ``ask`` sends data that begins with ``sent``.
    """
    own_end, peer_end = socket.socketpair()
    with own_end, peer_end:
        peer_end.sendall(answer)
        peer_end.shutdown(socket.SHUT_WR)
        own_end.settimeout(5)
        actual = ask(own_end)
        assert peer_end.recv(4096).startswith(sent)
        assert own_end.fileno() > 0, "the connection must stay open"
        return actual


def read_date(answer: bytes) -> str:
    """Return the date in the reply ``answer`` of the service."""
    return call_with_reply(
        answer, lambda sock: request_date(sock, ROUTE), b"HEAD / HTTP/1.1\r\nHost: ops"
    )


def read_browser(answer: bytes) -> str | None:
    """Return the name of the browser that sends ``answer``."""
    sent = b"GET /json/version HTTP/1.1\r\nHost: 127.0.0.1:9222\r\n"
    return call_with_reply(answer, lambda sock: request_browser(sock, "127.0.0.1", 9222), sent)


def request_tunnel(answer: bytes) -> None:
    """Open a tunnel through a proxy that sends ``answer``."""
    sent = b"CONNECT ops.example:80 HTTP/1.1\r\n"
    call_with_reply(answer, lambda sock: open_tunnel(sock, PROXY, ROUTE), sent)


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_the_head_of_a_reply_is_parsed(end: bytes) -> None:
    lines = (b"HTTP/1.1 204 No Content", b"Date:  today ", b"X: y", b"", b"")
    assert read_date(end.join(lines)) == "today"
    own_end, peer_end = socket.socketpair()
    with own_end, peer_end:
        peer_end.sendall(end.join(lines[:1] + lines[2:]))
        with request(own_end, "ops.example", 80, "HEAD", "/") as head:
            assert (head.status, dict(head.headers)) == (204, {"X": "y"})


@pytest.mark.parametrize("head", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1\r\n", b"HTTP/1.1 abc\r\n"])
def test_a_reply_that_is_not_http_has_no_date_and_opens_no_tunnel(head: bytes) -> None:
    assert read_date(head) == ""
    with pytest.raises(ProxyRefused, match="the proxy's answer is not HTTP") as refused:
        request_tunnel(head)
    assert refused.value.status == 0


def test_a_tunnel_is_opened_or_refused() -> None:
    request_tunnel(b"HTTP/1.0 200 Connection established\r\n\r\n")
    with pytest.raises(ProxyRefused, match="the proxy answers 407 to CONNECT ops") as refused:
        request_tunnel(b"HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n")
    assert refused.value.status == 407


def test_the_name_of_a_browser_is_parsed() -> None:
    answer = b'HTTP/1.1 200 OK\r\n\r\n{"Browser": "Chrome/130.0\\u001b[31m", "x": 1}'
    assert read_browser(answer) == "Chrome/130.0 [31m"


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\n\r\n[]", b'{"Browser": "x"}', b'HTTP/1.1 200\r\n\r\n{"Browser": 1}'],
)
def test_a_reply_that_is_not_from_a_browser_has_no_version(answer: bytes) -> None:
    assert read_browser(answer) is None


@pytest.mark.parametrize(
    ("answer", "status"),
    [(b"HTTP/1.1 403 Forbidden\r\n\r\n", "ok"), (b"SSH-2.0-x\r\n", "warn"), (b"", "warn")],
)
def test_the_spooler_is_healthy_only_if_it_answers_with_http(
    tmp_path: Path, answer: bytes, status: str
) -> None:
    with spooler(tmp_path / "cups.sock", answer) as requests:
        assert check_cups(tmp_path / "cups.sock").status == status
    assert requests[0].startswith(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n")


def test_a_missing_spooler_fails_the_check(tmp_path: Path) -> None:
    assert check_cups(tmp_path / "cups.sock").status == "fail"


@pytest.mark.parametrize(
    ("state", "status"),
    [("4  RUNNING", "ok"), ("1  STOPPED", "fail"), ("4  WIRD AUSGEFÜHRT", "ok")],
)
def test_the_state_of_the_windows_spooler_is_parsed(
    monkeypatch: pytest.MonkeyPatch, state: str, status: str
) -> None:
    text = (
        f"SERVICE_NAME: Spooler\n        TYPE     : 110  WIN32_OWN_PROCESS\n    STATE : {state}\n"
    )
    output = subprocess.CompletedProcess((), 0, text, "")
    monkeypatch.setattr(application, "run_program", lambda *_, **__: output)
    outcome = application._spooler()
    assert outcome.status == status
    # In PowerShell, `sc` without `.exe` is a different command, which writes a file.
    assert outcome.fix == ("" if status == "ok" else "start it: `sc.exe start Spooler`")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/usr/bin/python3 -m agent run --config x", True),
        ("/opt/venue-agent/venue-agent run", True),
        (r"C:\Program Files\venue-agent\venue-agent.exe run", True),
        ("venue-agent status", False),
        ("venue-agent doctor", False),
        ("vim agent run", False),
        ("ssh-agent run", False),
        ("", False),
    ],
)
def test_an_agent_is_recognised_by_its_command_line(line: str, expected: bool) -> None:
    words = tuple(line.split(" "))
    assert is_agent(words) is expected


def test_an_agent_in_a_folder_with_a_blank_is_recognised() -> None:
    assert is_agent((r"C:\Program Files\venue-agent\venue-agent.exe", "run"))


@contextlib.contextmanager
def start_process(*words: str) -> Iterator[int]:
    """Start a process with ``words`` in its command line. Yield its process id when it runs."""
    command = (sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", *words)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_running_agents_are_listed_among_the_processes() -> None:
    with (
        start_process("venue-agent", "run") as agent,
        start_process("venue-agent", "status") as status,
    ):
        agents, others = other_agents(None), other_agents(agent)
    assert agents is not None
    assert agent in agents
    assert status not in agents
    assert others is not None
    assert agent not in others


def test_other_agents_are_unknown_if_processes_cannot_be_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", "/nonexistent")
    assert other_agents(None) is None


def test_the_state_of_a_systemd_unit_is_parsed() -> None:
    text = "LoadState=loaded\nUnitFileState=enabled\nActiveState=active\nMainPID=812\nNRestarts=3\n"
    unit = parse_systemctl(text)
    assert unit == UnitFacts(
        manager="systemd",
        is_installed=True,
        starts_at_boot=True,
        activity="running",
        pid=812,
        restarts=3,
    )
    assert unit.is_running


@pytest.mark.parametrize("state", ["enabled-runtime", "linked", "static", "disabled"])
def test_a_unit_that_does_not_start_at_boot_is_not_enabled(state: str) -> None:
    unit = parse_systemctl(f"LoadState=loaded\nUnitFileState={state}\nActiveState=active\n")
    assert unit is not None
    assert not unit.starts_at_boot


def test_a_masked_unit_is_installed_and_masked() -> None:
    unit = parse_systemctl("LoadState=masked\nUnitFileState=masked\nActiveState=inactive\n")
    assert unit is not None
    assert (unit.is_installed, unit.is_masked, unit.starts_at_boot) == (True, True, False)


ARP = """IP address       HW type     Flags       HW address            Mask     Device
192.168.1.1      0x1         0x2         aa:bb:cc:dd:ee:ff     *        eth0
192.168.1.9      0x1         0x0         00:00:00:00:00:00     *        eth0
"""


@pytest.mark.parametrize(
    ("address", "is_silent"),
    [("192.168.1.1", False), ("192.168.1.9", True), ("192.168.1.5", False)],
)
def test_an_address_that_did_not_answer_arp_is_recognised(address: str, is_silent: bool) -> None:
    assert parse_unanswered_arp(ARP, address) is is_silent


def test_a_certificate_is_parsed(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "Name\u202eof\x07it")
    der = authority.certificate.public_bytes(serialization.Encoding.DER)
    actual = parse_certificate(der)
    assert actual is not None
    assert actual.hosts == actual.issuer
    assert actual.issuer == "Name of it"
    assert parse_certificate(der[:-20]) is None


def test_the_hosts_of_a_certificate_are_the_alternative_names_of_its_subject(
    tmp_path: Path,
) -> None:
    server_context(tmp_path, make_authority(tmp_path), host="192.0.2.7")
    pem = (tmp_path / "server.pem").read_text().partition("-----BEGIN CERTIFICATE")
    actual = parse_certificate(ssl.PEM_cert_to_DER_cert("".join(pem[1:])))
    assert actual is not None
    assert actual.hosts == "192.0.2.7"


NAME = x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "ops")


@pytest.mark.parametrize("names", [b"", b"\x30\x80", bytes.fromhex("3002a300")])
@pytest.mark.parametrize(
    ("attributes", "issuer", "hosts"),
    [([NAME], "ops", "ops"), ([], "an unnamed issuer", "no host")],
    ids=["named", "unnamed"],
)
def test_a_certificate_with_unreadable_hosts_is_parsed(
    names: bytes, attributes: list[x509.NameAttribute[str]], issuer: str, hosts: str
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(attributes)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(
            x509.UnrecognizedExtension(x509.oid.ExtensionOID.SUBJECT_ALTERNATIVE_NAME, names),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    actual = parse_certificate(certificate.public_bytes(serialization.Encoding.DER))
    assert actual is not None
    assert (actual.issuer, actual.hosts) == (issuer, hosts)


def test_a_certificate_with_a_negative_serial_number_is_parsed() -> None:
    der = (FIXTURES / "application/certificate.der").read_bytes()
    negative = der.replace(bytes.fromhex("020101"), bytes.fromhex("0201ff"), 1)
    assert negative != der
    assert parse_certificate(negative) == parse_certificate(der)


@pytest.mark.parametrize(
    ("ahead", "status", "words"),
    [
        (timedelta(seconds=20), "ok", "agrees"),
        (timedelta(seconds=90), "warn", "1 min 30 s ahead"),
        (timedelta(hours=-2), "fail", "2 h behind"),
        (timedelta(days=400), "fail", "400 d ahead"),
    ],
)
def test_clock_differences_are_classified(ahead: timedelta, status: str, words: str) -> None:
    outcome = compare_clocks(NOW + ahead, NOW)
    assert outcome.status == status
    assert words in outcome.detail


def _certificate(begins: int, ends: int, issuer: str = "Some CA") -> Certificate:
    """Return a certificate that is valid between two days, counted from ``NOW``."""
    day = timedelta(days=1)
    return Certificate(issuer, "ops", NOW + begins * day, NOW + ends * day)


@pytest.mark.parametrize(
    ("actual", "why", "words"),
    [
        (_certificate(-9, -1), "certificate has expired", "expired on 2026-02-28"),
        (_certificate(1, 9), "certificate is not yet valid", "not valid before 2026-03-02"),
        (_certificate(-9, 9), "Hostname mismatch, ...", "not for this address"),
        (_certificate(-9, 9), "self-signed certificate", "issued by Some CA"),
        (_certificate(-9, 9, "FortiGate CA"), "unable to get issuer", "inspects TLS"),
        (None, "unable to get issuer", "not trusted"),
    ],
)
def test_the_reason_why_a_certificate_is_not_trusted_is_reported(
    actual: Certificate | None, why: str, words: str
) -> None:
    outcome = untrusted_outcome(why, actual, NOW)
    assert outcome.status == "fail"
    assert words in outcome.detail
    assert outcome.fix


def shake_hands(authority: Authority, folder: Path) -> None:
    """Perform a TLS handshake in memory, with the strict verification of Python 3.13. Raises
    ssl.SSLError if the handshake fails.
    """
    context = ssl.create_default_context(cafile=str(authority.file))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = server_context(folder, authority).wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()


def test_a_certificate_authority_without_key_usage_is_reported(tmp_path: Path) -> None:
    shake_hands(make_authority(tmp_path), tmp_path)
    incomplete = make_authority(tmp_path, has_key_usage=False)
    with pytest.raises(ssl.SSLCertVerificationError) as error_info:
        shake_hands(incomplete, tmp_path)
    assert error_info.value.verify_code in STRICT_ERRORS
    why = error_info.value.verify_message
    outcome = untrusted_outcome(why, _certificate(-9, 9), NOW, is_malformed=True)
    assert "key usage" in why
    assert outcome.detail == f"issued by Some CA, but not as RFC 5280 requires ({why})"
    assert "key usage keyCertSign" in outcome.fix
    assert 18 not in STRICT_ERRORS, "a self-signed certificate must not count as malformed"


@given(st.binary(max_size=400))
def test_any_bytes_of_a_peer_raise_no_unexpected_error(data: bytes) -> None:
    read_date(data)
    read_date(b"HTTP/1.1 200 OK\r\n" + data)
    read_browser(data)
    read_browser(b"HTTP/1.1 200 OK\r\n\r\n" + data)
    with contextlib.suppress(ProxyRefused):
        request_tunnel(b"HTTP/1.1 200 OK\r\n" + data)
    parse_certificate(data)


@given(st.text(max_size=400))
def test_any_text_of_other_programs_raises_no_error(text: str) -> None:
    parse_systemctl(text)
    parse_unanswered_arp(text, "192.168.1.1")
    is_agent(tuple(text.split()))
