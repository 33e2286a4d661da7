"""Tests of e-mail notifications with a real SMTP server that requires STARTTLS and a password."""

import asyncio
import email
import email.policy
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from sqlalchemy.orm import Session as DatabaseSession

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.alerts.notifications import new_notification
from controlplane.settings import Settings, Smtp
from controlplane.storage.monitoring_tables import NotifiedAlert
from controlplane.web.webhooks import mail as mails
from controlplane.web.webhooks.alerts import AlertOutbox
from controlplane.web.webhooks.mail import mail_of, send_mail
from controlplane.web.webhooks.sending import Claim
from tests.fakes.tls_front import make_authority, server_context
from tests.unit.controlplane.alerts.fleet_of_routes import (
    RECEIVERS,
    SETTINGS,
    RoutedFleet,
    routed_fleet,
)
from tests.unit.controlplane.running_service import RunningService

pytestmark = pytest.mark.medium
PASSWORD = "correct horse"


class Mailbox:
    """Stores the messages that the server accepts.

    ``answer`` is the server's reply to a message, which it sends after ``delay_s``. The server
    refuses the recipient ``unknown``. ``quit_reply`` is its reply to QUIT. ``encrypted`` is, for
    each stored message, whether it arrived over TLS.
    """

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.encrypted: list[bool] = []
        self.answer = "250 OK"
        self.delay_s = 0.0
        self.quit_reply = "221 Bye"
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
        await asyncio.sleep(self.delay_s)
        return self.answer

    async def handle_QUIT(  # noqa: N802 - aiosmtpd calls this name
        self, _server: SMTP, _session: Session, _envelope: Envelope
    ) -> str:
        return self.quit_reply


@dataclass(frozen=True)
class MailServer:
    """An SMTP server: its mailbox, how to connect, and the authority of its certificate."""

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
def trusted_server(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> MailServer:
    """Let the service trust the authority of the mail server's certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
    return server


@pytest.fixture
def settings(trusted_server: MailServer) -> Settings:
    return replace(SETTINGS, smtp=trusted_server.smtp)


@pytest.fixture
async def fleet(service: RunningService) -> RoutedFleet:
    return await routed_fleet(service)


async def test_a_mail_that_the_server_refused_is_sent_again_with_the_delivery_id_and_a_link(
    fleet: RoutedFleet, trusted_server: MailServer
) -> None:
    device, *_ = await fleet.add(3)
    await fleet.set_route(kind="email", target="ada@example.com, bob@example.com")
    mailbox = trusted_server.mailbox
    mailbox.answer = "451 try again later"
    fleet.offline = {device}
    await fleet.run(10)
    (delivery,) = (await fleet.call("/deliveries"))["deliveries"]
    assert delivery["status"] == "pending"
    assert "451" in delivery["error"]
    mailbox.answer = "250 OK"
    await fleet.run(15)
    (message,) = mailbox.messages
    assert mailbox.recipients == ["ada@example.com", "bob@example.com"]
    assert mailbox.encrypted == [True]
    assert message["From"] == "alerts@venue.example"
    assert message["Subject"].startswith(
        "Firing: till-01 (loc-0001) has been offline since 20 Nov 12:"
    )
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
    trusted_server: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    trusted_server.mailbox.unknown = "bob@example.com"
    message = mail("ada@example.com, bob@example.com")
    assert (
        await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=trusted_server.smtp), message)
        == ""
    )
    assert trusted_server.mailbox.recipients == ["ada@example.com"]
    text = "the SMTP server refused recipients of an e-mail: bob@example.com"
    assert [each.message for each in caplog.records if each.name.startswith("control")] == [text]


async def test_a_wrong_password_is_the_reason_of_the_failure(trusted_server: MailServer) -> None:
    smtp = replace(trusted_server.smtp, password="wrong")
    assert (await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=smtp), mail())).startswith(
        "SMTPAuthenticationError"
    )
    assert trusted_server.mailbox.messages == []


async def test_a_refused_connection_is_the_reason_of_the_failure(
    trusted_server: MailServer,
) -> None:
    smtp = replace(trusted_server.smtp, port=9)
    assert "refused" in await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=smtp), mail())


async def test_a_mail_is_sent_once_if_the_server_replies_after_the_delivery_timeout(
    trusted_server: MailServer,
) -> None:
    trusted_server.mailbox.delay_s = 2
    settings = replace(SETTINGS, smtp=trusted_server.smtp, delivery_timeout_s=1)
    assert await asyncio.to_thread(send_mail, settings, mail()) == ""
    assert len(trusted_server.mailbox.messages) == 1


async def test_an_accepted_mail_is_a_success_whatever_the_server_replies_to_quit(
    trusted_server: MailServer,
) -> None:
    trusted_server.mailbox.quit_reply = "421 closing"
    settings = replace(SETTINGS, smtp=trusted_server.smtp)
    assert await asyncio.to_thread(send_mail, settings, mail()) == ""
    assert len(trusted_server.mailbox.messages) == 1


async def test_a_connection_to_port_465_begins_with_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, mailbox = make_authority(tmp_path), Mailbox()
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    listener = await asyncio.get_running_loop().create_server(
        lambda: SMTP(mailbox, hostname="mail.example"),
        "127.0.0.1",
        0,
        ssl=server_context(tmp_path, authority),
    )
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        monkeypatch.setattr(mails, "IMPLICIT_TLS_PORT", port)
        smtp = Smtp(host="127.0.0.1", port=port, sender="alerts@venue.example")
        assert await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=smtp), mail()) == ""
        assert len(mailbox.messages) == 1
        monkeypatch.delenv("SSL_CERT_FILE")
        reason = await asyncio.to_thread(send_mail, replace(SETTINGS, smtp=smtp), mail())
        assert reason.startswith(ssl.SSLCertVerificationError.__name__)


DATE = datetime(2026, 11, 21, 7, tzinfo=UTC)
BODY = {
    "type": "alert.firing", "severity": "warning", "text": "kase-ā is offline", "locationId": "l",
}  # fmt: skip


def built_mail(recipients: str, sender: str = "alerts@venue.example") -> EmailMessage:
    """Return the mail that the service builds for a firing alert."""
    smtp = Smtp(host="127.0.0.1", port=9, sender=sender)
    return mail_of("msg_1", recipients, [BODY], smtp, DATE)


def test_a_mail_is_ascii_so_that_the_server_needs_no_extension() -> None:
    message = built_mail("ada@kafejnīca.example,bob@example.com", "alerts@kafejnīca.example")
    content = message.as_bytes()
    assert content.isascii()
    domain = "kafejnīca.example".encode("idna").decode()
    assert message["To"] == f"ada@{domain}, bob@example.com"
    assert message["From"] == f"alerts@{domain}"
    assert message["Message-ID"] == f"<msg_1@{domain}>"
    assert b"=?" not in content.partition(b"Subject:")[0]
    assert "kase-ā is offline" in message.get_content()


def test_a_domain_that_idna_would_change_to_another_domain_is_unchanged() -> None:
    """IDNA 2003 changes "ß" to "ss", which can be the domain of another owner."""
    assert built_mail("ada@straße.example")["To"] == "ada@straße.example"


async def test_the_date_of_a_digest_is_the_time_at_which_it_was_due(
    fleet: RoutedFleet, service: RunningService
) -> None:
    route = await fleet.set_route(kind="email", target="ada@example.com", digest=True)
    organization_id, now = DEFAULT_ORGANIZATION, service.clock()
    due = now + timedelta(hours=19)

    def claim(session: DatabaseSession) -> Sequence[Claim]:
        digest = new_notification(organization_id, route["route"]["id"], "digest", due, now)
        alert = NotifiedAlert(
            notification=digest.id, route=digest.route, alert_id=uuid.uuid4(), is_resolved=False,
            body=json.dumps(BODY),
        )  # fmt: skip
        session.add_all((digest, alert))
        session.flush()
        return AlertOutbox(SETTINGS, "mail").claim(session, due)

    (claimed,) = service.database.write(claim)
    assert claimed.mail is not None
    assert parsedate_to_datetime(claimed.mail["Date"]) == due.replace(microsecond=0)
    # Another process does not send the e-mail while the server may still be processing it.
    later = due + timedelta(seconds=SETTINGS.delivery_timeout_s + mails.REPLY_TIMEOUT_S)
    outbox = AlertOutbox(SETTINGS, "mail")
    assert service.database.write(lambda session: outbox.claim(session, later)) == []


async def test_a_slow_smtp_server_does_not_delay_notifications_for_webhooks(
    fleet: RoutedFleet, service: RunningService
) -> None:
    routes = {
        "mail": await fleet.set_route(kind="email", target="ada@example.com"),
        "webhooks": await fleet.set_route(name="Hook"),
    }
    now = service.clock()

    def claims(session: DatabaseSession) -> dict[str, list[str]]:
        added = {
            receivers: new_notification(
                DEFAULT_ORGANIZATION, each["route"]["id"], receivers, now, now
            )
            for receivers, each in routes.items()
        }
        session.add_all(added.values())
        session.flush()
        keys = {row.id: row.group_key for row in added.values()}
        return {
            receivers: [
                keys[claim.id] for claim in AlertOutbox(SETTINGS, receivers).claim(session, now)
            ]
            for receivers in RECEIVERS
        }

    assert service.database.write(claims) == {"webhooks": ["webhooks"], "mail": ["mail"]}


def test_a_service_without_an_smtp_server_sends_no_mail() -> None:
    assert send_mail(replace(SETTINGS, smtp=None), mail()) == (
        "the service has no SMTP server: set --smtp"
    )
