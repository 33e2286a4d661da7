"""Notifications by e-mail, through the SMTP server of the operator."""

import logging
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from email import policy
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Final

from agent.wire.addresses import is_loopback
from controlplane.settings import Settings, Smtp
from controlplane.web.webhooks.bodies import lines_of, link_of, summary_of

log = logging.getLogger("controlplane.web.webhooks.mail")
SUBJECT_MAX: Final = 150
IMPLICIT_TLS_PORT: Final = 465
"""The port on which a connection begins with TLS (RFC 8314, section 3.3)."""
REPLY_TIMEOUT_S: Final = 60
"""How long a server may process an e-mail, for example scan it, before it replies.

If this timeout is too short, the e-mail is sent again although the server has accepted it, so it is
delivered several times (RFC 5321, section 4.5.3.2.6).
"""
POLICY: Final = policy.default.clone(cte_type="7bit")
"""Encodes text as ASCII, because a server need not support 8BITMIME (RFC 6152)."""


def mail_of(
    message_id: str,
    recipients: str,
    bodies: Sequence[Mapping[str, Any]],
    smtp: Smtp | None,
    date: datetime,
) -> EmailMessage:
    """Return the e-mail of a notification. Each attempt has the same ``Message-ID``.

    Args:
        recipients: addresses, joined by commas.
        smtp: None if the operator has removed the SMTP server. Then sending fails.
        date: when the e-mail was complete (RFC 5322, section 3.6.1).
    """
    sender = "" if smtp is None else _with_ascii_domain(smtp.sender)
    mail = EmailMessage(POLICY)
    mail["Message-ID"] = f"<{message_id}@{sender.rpartition('@')[2] or 'localhost'}>"
    mail["Date"] = format_datetime(date)
    mail["From"] = sender
    mail["To"] = ", ".join(map(_with_ascii_domain, recipients.split(",")))
    mail["Subject"] = " ".join(summary_of(bodies).split())[:SUBJECT_MAX]
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834
    link = link_of(bodies)
    lines = lines_of(bodies) + ([] if link is None else ["", f"Acknowledge or silence: {link}"])
    mail.set_content("\n".join(lines) + "\n")
    return mail


def send_mail(settings: Settings, mail: EmailMessage) -> str:
    """Send an e-mail. Return the reason of a failure, or "" after success.

    TLS is required, with a valid certificate, except for a server at a loopback address that does
    not offer it. On port 465, TLS begins with the connection, so that an attacker cannot remove the
    offer of STARTTLS. If the server refuses only some of the recipients, this counts as success,
    and a warning is logged: another attempt would send the e-mail to the accepted recipients again.
    """
    smtp = settings.smtp
    if smtp is None:
        return "the service has no SMTP server: set --smtp"
    refused = None
    try:
        with _connect(smtp, settings.delivery_timeout_s) as client:
            if not _start_tls(client):
                return "the SMTP server does not offer STARTTLS"
            if smtp.user is not None:
                client.login(smtp.user, smtp.password or "")
            if client.sock is not None:
                client.sock.settimeout(max(REPLY_TIMEOUT_S, settings.delivery_timeout_s))
            refused = client.send_message(mail)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        if refused is None:
            return f"{type(error).__name__}: {error}"
        # The server has accepted the e-mail. An error of QUIT does not change that.
    if refused:
        log.warning(
            "the SMTP server refused recipients of an e-mail: %s", ", ".join(sorted(refused))
        )
    return ""


def _connect(smtp: Smtp, timeout_s: float) -> smtplib.SMTP:
    if smtp.port == IMPLICIT_TLS_PORT:
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(smtp.host, smtp.port, timeout=timeout_s, context=context)
    return smtplib.SMTP(smtp.host, smtp.port, timeout=timeout_s)


def _start_tls(client: smtplib.SMTP) -> bool:
    """Start TLS unless it is active. Return False if TLS is required but not offered."""
    client.ehlo()
    if isinstance(client, smtplib.SMTP_SSL):
        return True
    if client.has_extn("starttls"):
        client.starttls(context=ssl.create_default_context())
        client.ehlo()
        return True
    return client.sock is not None and is_loopback(client.sock.getpeername()[0])


def _with_ascii_domain(address: str) -> str:
    """Return an address with the ASCII form of its domain, which needs no SMTPUTF8 (RFC 5890).

    The domain is unchanged if its ASCII form would be a different domain, as for a name with ß.
    """
    local_part, _, domain = address.rpartition("@")
    try:
        encoded = domain.encode("idna")
        is_same = encoded.decode("idna") == domain.lower()
    except UnicodeError:
        return address
    return f"{local_part}@{encoded.decode()}" if is_same else address
