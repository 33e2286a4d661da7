"""Tests of e-mail notifications with a real SMTP server that requires STARTTLS and a password."""

import asyncio
import email
import email.policy
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from controlplane.settings import Settings, Smtp
from controlplane.web.webhooks.mail import send_mail
from tests.fakes.tls_front import make_authority, server_context
from tests.unit.controlplane.alerts.fleet_of_routes import SETTINGS, RoutedFleet, routed_fleet
from tests.unit.controlplane.running_service import RunningService

pytestmark = pytest.mark.medium
PASSWORD = "correct horse"


class Mailbox:
    """Stores the messages that the server accepts.

    ``answer`` is the server's reply to a message. The server refuses the recipient ``unknown``.
    ``encrypted`` is, for each stored message, whether it arrived over TLS.
    """

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.encrypted: list[bool] = []
        self.answer = "250 OK"
        self.unknown = ""

    async def handle_RCPT(  # noqa: N802 - aiosmtpd calls this name
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if address == self.unknown:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - aiosmtpd calls this name
        self, _server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        assert isinstance(envelope.content, bytes)
        if self.answer.startswith("250"):
            message: Any = email.message_from_bytes(envelope.content, policy=email.policy.default)
            self.messages.append(message)
            self.recipients += envelope.rcpt_tos
            self.encrypted.append(session.ssl is not None)
        return self.answer


@dataclass(frozen=True)
class MailServer:
    mailbox: Mailbox
    smtp: Smtp
    authority: Path


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[MailServer]:
    def authenticate(_server: Any, _session: Any, _envelope: Any, _name: Any, data: Any) -> Any:
        is_right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
        return AuthResult(success=is_right, handled=False)

    authority, mailbox = make_authority(tmp_path), Mailbox()
    context = server_context(tmp_path, authority)

    def connection() -> SMTP:
        return SMTP(
            mailbox, hostname="mail.example", tls_context=context, require_starttls=True,
            authenticator=authenticate, auth_required=True,
        )  # fmt: skip

    listener = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        smtp = Smtp(
            host="127.0.0.1", port=port, sender="alerts@venue.example", user="alerts",
            password=PASSWORD,
        )  # fmt: skip
        yield MailServer(mailbox, smtp, authority.file)


@pytest.fixture
def trusted(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> MailServer:
    """Let the service trust the authority of the mail server's certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
    return server


@pytest.fixture
def settings(trusted: MailServer) -> Settings:
    return replace(SETTINGS, smtp=trusted.smtp)


@pytest.fixture
async def fleet(service: RunningService) -> RoutedFleet:
    return await routed_fleet(service)


async def test_a_mail_that_the_server_refused_is_sent_again_with_the_delivery_id_and_a_link(
    fleet: RoutedFleet, trusted: MailServer
) -> None:
    device, *_ = await fleet.add(3)
    await fleet.add_route(kind="email", target="ada@example.com, bob@example.com")
    mailbox = trusted.mailbox
    mailbox.answer = "451 try again later"
    fleet.offline = {device}
    await fleet.minutes(10)
    (delivery,) = (await fleet.call("/deliveries"))["deliveries"]
    assert delivery["status"] == "pending"
    assert "451" in delivery["error"]
    mailbox.answer = "250 OK"
    await fleet.minutes(15)
    (message,) = mailbox.messages
    assert mailbox.recipients == ["ada@example.com", "bob@example.com"]
    assert mailbox.encrypted == [True]
    assert message["From"] == "alerts@venue.example"
    assert message["Subject"].startswith("Firing: till-01 (loc-0001) is offline since 20 Nov 12:")
    assert message["Message-ID"] == f"<{delivery['id']}@venue.example>"
    assert "Acknowledge or silence: http://service/#/alerts/" in message.get_content()
    (delivery,) = (await fleet.call("/deliveries"))["deliveries"]
    assert (delivery["status"], delivery["error"]) == ("sent", "")


def mail(recipients: str = "ada@example.com") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "alerts@venue.example", recipients
    message.set_content("text")
    return message


async def test_a_server_with_an_unknown_certificate_gets_no_mail(server: MailServer) -> None:
    reason = await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=server.smtp), mail())
    assert reason.startswith(ssl.SSLCertVerificationError.__name__)
    assert server.mailbox.messages == []


async def test_a_refused_recipient_is_logged_and_the_others_get_the_mail(
    trusted: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    trusted.mailbox.unknown = "bob@example.com"
    message = mail("ada@example.com, bob@example.com")
    assert await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=trusted.smtp), message) == ""
    assert trusted.mailbox.recipients == ["ada@example.com"]
    text = "the SMTP server refused recipients of an e-mail: bob@example.com"
    assert [each.message for each in caplog.records if each.name.startswith("control")] == [text]


async def test_a_wrong_password_is_the_reason_of_the_failure(trusted: MailServer) -> None:
    smtp = replace(trusted.smtp, password="wrong")
    assert (await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=smtp), mail())).startswith(
        "SMTPAuthenticationError"
    )
    assert trusted.mailbox.messages == []


async def test_a_refused_connection_is_the_reason_of_the_failure(trusted: MailServer) -> None:
    smtp = replace(trusted.smtp, port=9)
    assert "refused" in await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=smtp), mail())


def test_a_service_without_an_smtp_server_sends_no_mail() -> None:
    assert send_mail(replace(SETTINGS, smtp=None), mail()) == (
        "the service has no SMTP server: set --smtp"
    )
