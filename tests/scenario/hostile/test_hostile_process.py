"""Runs the real agent against a hostile service, including invalid TLS.

The agent's status must report each fault, and the agent must keep running.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.rules.health import CONDITIONS
from tests import sizes
from tests.fakes import hostile_service as replies
from tests.fakes.hostile_service import Fault, HostileService
from tests.fakes.tls_front import authority_key_usage
from tests.scenario.agent_process import AgentProcess, forked_agent, write_config


def certificate(home: Path, name: str, *, days: int = 1) -> tuple[Path, Path]:
    """Create a self-signed certificate for a name or an IPv4 address. It expires in ``days`` days.

    Return the files of the certificate and of its key.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    subject_name: x509.GeneralName = (
        x509.IPAddress(IPv4Address(name)) if name[0].isdigit() else x509.DNSName(name)
    )
    now = datetime.now(UTC)
    signed_certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([subject_name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(authority_key_usage(is_server=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = home / "service.pem", home / "service.key"
    paths[0].write_bytes(signed_certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


@contextlib.asynccontextmanager
async def tls_service(
    paths: tuple[Path, Path], version_max: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Accept TLS connections and reply with the status 500 to each request.

    Yield the address, and the list of the data that was received after each handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*paths)
    if version_max < ssl.TLSVersion.TLSv1_2:
        context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = min(version_max, ssl.TLSVersion.TLSv1_2)
    context.maximum_version = version_max
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            requests.append(await reader.read(65536))
            writer.write(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


async def _problem_of(agent: AgentProcess, code: str) -> dict[str, str]:
    """Wait until the agent's status has a problem with this code, and return the problem."""
    await agent.until_logged(CONDITIONS[code].title)
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(FileNotFoundError):
                for problem in agent.status()["problems"]:
                    if problem["code"] == code:
                        return dict(problem)
            await asyncio.sleep(0.05)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "days", "version_max", "is_trusted", "code"),
    [
        ("127.0.0.1", 1, ssl.TLSVersion.TLSv1_3, True, "server-error"),
        ("127.0.0.1", 1, ssl.TLSVersion.TLSv1_2, True, "server-error"),
        ("other.example", 1, ssl.TLSVersion.TLSv1_3, True, "tls"),
        ("127.0.0.1", -1, ssl.TLSVersion.TLSv1_3, True, "tls"),
        ("127.0.0.1", 1, ssl.TLSVersion.TLSv1_3, False, "tls"),
        ("127.0.0.1", 1, ssl.TLSVersion.TLSv1_1, True, "tls"),
    ],
    ids=["good", "TLS 1.2", "wrong name", "expired", "unknown issuer", "TLS 1.1"],
)
async def test_key_is_sent_only_over_trusted_and_current_tls(  # noqa: PLR0917 - one row each
    tmp_path: Path, name: str, days: int, version_max: ssl.TLSVersion, is_trusted: bool, code: str
) -> None:
    paths = certificate(tmp_path, name, days=days)
    trust = f'ca_file = "{paths[0]}"' if is_trusted else ""
    async with tls_service(paths, version_max) as (base_url, requests):  # noqa: SIM117 - the url is needed
        async with forked_agent(write_config(tmp_path, base_url, service=trust)) as agent:
            problem = await _problem_of(agent, code)
            assert await agent.stop() == 0
    assert problem["fix"] == CONDITIONS[code].fix
    is_key_received = any(b"Bearer" in request for request in requests)
    assert is_key_received is (code == "server-error"), (
        "the key must be sent to a trusted host, and never to a different host"
    )


FAULTS: dict[str, tuple[Fault, str]] = {
    "500": (replies.status(500), "server-error"),
    "portal": (replies.status(200, replies.PORTAL, "text/html"), "captive-portal"),
    "reset": (replies.reset, "connection-lost"),
    "garbage": (replies.status(200, b"\x00garbage"), "bad-reply"),
    "401": (replies.status(401), "credential-refused"),
}


@pytest.mark.parametrize("name", sizes.large_except({"500", "garbage"}, FAULTS))
async def test_process_reports_the_fault_and_continues(name: str, tmp_path: Path) -> None:
    fault, code = FAULTS[name]
    async with HostileService(lambda: datetime.now(UTC)) as service:
        service.faults["challenge"] = fault
        config = write_config(
            tmp_path,
            service.base_url,
            logging='level = "info"',
        )
        async with forked_agent(config) as agent:
            problem = await _problem_of(agent, code)
            assert problem["title"] == CONDITIONS[code].title
            assert len(problem["detail"].splitlines()) == 1
            assert await agent.stop() == 0
        assert "Traceback" not in agent.log
    waits = [float(s) for s in re.findall(r"next try in ([\d.]+) s", agent.log)]
    assert len(service.called_at) <= len(waits) + 1, "each further call must come after a wait"
    # A wait is 50 to 100 % of its maximum, which is at least 2**attempt s. 0.4 leaves a margin.
    assert all(wait >= 0.4 * 2**attempt for attempt, wait in enumerate(waits[:4])), waits
