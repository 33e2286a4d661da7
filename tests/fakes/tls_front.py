"""A TLS proxy in front of a plain server on loopback, with certificates of a test authority."""

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """A certificate authority. ``file`` contains its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    file: Path


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def authority_key_usage(*, is_server: bool = False) -> x509.KeyUsage:
    """Return the key usage extension of an authority's certificate (RFC 5280, section 4.2.1.3).

    With ``is_server``, a TLS server can use the certificate as well. Python 3.13 and later refuse
    an authority without this extension.
    """
    return x509.KeyUsage(
        digital_signature=is_server,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def make_authority(
    folder: Path, name: str = "Venue Test Authority", *, has_key_usage: bool = True
) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now + timedelta(days=400))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if has_key_usage:
        builder = builder.add_extension(authority_key_usage(), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    file = folder / "authority.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(key, certificate, file)


def server_context(
    folder: Path,
    authority: Authority,
    *,
    host: str = "127.0.0.1",
    begins: timedelta = timedelta(days=-30),
    ends: timedelta = timedelta(days=300),
) -> ssl.SSLContext:
    """Return a server's context with a certificate for ``host``.

    ``begins`` and ``ends`` limit the validity of the certificate, relative to now.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    try:
        name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        name = x509.DNSName(host)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(host))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@contextlib.asynccontextmanager
async def tls_front(
    plain_port: int, context: ssl.SSLContext, *, port: int = 0
) -> AsyncIterator[int]:
    """Yield a loopback port that terminates TLS and forwards everything to ``plain_port``.

    With ``port`` 0, a free port is used.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", plain_port)
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        except OSError:
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
    with contextlib.suppress(OSError):
        sink.close()
