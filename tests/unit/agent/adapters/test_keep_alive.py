"""Tests of TCP keep-alive of the client's connections: directly, and with TLS through a proxy."""

import asyncio
import contextlib
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.adapters.http_client import client_for
from agent.config.model import Service
from tests.unit.agent.samples import config

NAME = "ops.example.test"
KEEP_ALIVE_OPTIONS = (1, 4, 1, 3)
"""Whether keep-alive is on (1), idle time and interval in seconds, and number of probes."""
pytestmark = pytest.mark.skipif(
    not hasattr(socket, "TCP_KEEPIDLE"), reason="this system has other keep-alive options"
)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@contextlib.asynccontextmanager
async def server(tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Yield the port of a server whose replies are empty."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(reply, "127.0.0.1", 0, ssl=tls)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[int]:
    """Yield the port of a proxy that connects every tunnel (CONNECT) to ``port``."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(f"CONNECT {NAME}:".encode())
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        onward_reader, onward = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(copy(reader, onward), copy(onward_reader, writer))

    listener = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a self-signed certificate and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    x509_certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    file.write_bytes(
        x509_certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file


async def options(service: Service, *, tcp_keep_alive: bool) -> tuple[int, ...]:
    """Make a call. Return the keep-alive options of its connection: on, idle, interval, count.

    ``tcp_keep_alive``: whether the kernel checks the connections of the client.
    """
    async with (
        client_for(service, tcp_keep_alive=tcp_keep_alive) as client,
        client.stream("POST", service.base_url) as response,
    ):
        assert response.status_code == 200
        connection = response.extensions["network_stream"].get_extra_info("socket")
        is_on = connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        return (is_on, *(connection.getsockopt(socket.IPPROTO_TCP, name) for name in names))


async def test_a_connection_with_keep_alive_is_checked_by_the_kernel() -> None:
    async with server() as port:
        service = config(f"http://127.0.0.1:{port}").service
        assert await options(service, tcp_keep_alive=True) == KEEP_ALIVE_OPTIONS


async def test_a_connection_without_keep_alive_is_not_checked() -> None:
    async with server() as port:
        on, *_ = await options(config(f"http://127.0.0.1:{port}").service, tcp_keep_alive=False)
        assert on == 0


@pytest.mark.parametrize("setting", ["service.proxy", "HTTPS_PROXY"])
async def test_a_tls_connection_through_a_proxy_is_checked_by_the_kernel(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    async with server(tls) as port, proxy_to(port) as proxy_port:
        url = f"http://127.0.0.1:{proxy_port}"
        service = config(f"https://{NAME}").service.model_copy(update={"ca_file": str(certificate)})
        if setting == "service.proxy":
            service = service.model_copy(update={"proxy": url})
        else:
            monkeypatch.setenv(setting, url)
        assert await options(service, tcp_keep_alive=True) == KEEP_ALIVE_OPTIONS
