"""Notifications by e-mail, through the SMTP server of the operator."""

import logging
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from agent.wire.addresses import is_loopback
from controlplane.settings import Settings, Smtp
from controlplane.web.webhooks.bodies import lines_of, link_of, summary_of

log = logging.getLogger("controlplane.web.webhooks.mail")
SUBJECT_MAX = 150


def mail_of(
    message_id: str,
    recipients: str,
    bodies: Sequence[Mapping[str, Any]],
    smtp: Smtp | None,
    created_at: datetime,
) -> EmailMessage:
    """Return the e-mail of a notification. Each attempt has the same ``Message-ID``.

    Args:
        recipients: addresses, joined by commas.
        smtp: None if the operator has removed the SMTP server. Then sending fails.
    """
    sender = "" if smtp is None else smtp.sender
    mail = EmailMessage()
    mail["Message-ID"] = f"<{message_id}@{sender.rpartition('@')[2] or 'localhost'}>"
    mail["Date"] = format_datetime(created_at)
    mail["From"] = sender
    mail["To"] = recipients.replace(",", ", ")
    mail["Subject"] = " ".join(summary_of(bodies).split())[:SUBJECT_MAX]
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834
    link = link_of(bodies)
    lines = lines_of(bodies) + ([] if link is None else ["", f"Acknowledge or silence: {link}"])
    mail.set_content("\n".join(lines) + "\n")
    return mail


def send_mail(settings: Settings, mail: EmailMessage) -> str:
    """Send an e-mail. Return the reason of a failure, or "" after success.

    TLS is required, with a valid certificate, except for a server at a loopback address that does
    not offer it. If the server refuses only some of the recipients, this counts as success, and a
    warning is logged: another attempt would send the e-mail to the accepted recipients again.
    """
    smtp = settings.smtp
    if smtp is None:
        return "the service has no SMTP server: set --smtp"
    try:
        with smtplib.SMTP(smtp.host, smtp.port, timeout=settings.delivery_timeout_s) as client:
            client.ehlo()
            peer = None if client.sock is None else client.sock.getpeername()[0]
            if client.has_extn("starttls"):
                client.starttls(context=ssl.create_default_context())
                client.ehlo()
            elif peer is None or not is_loopback(peer):
                return "the SMTP server does not offer STARTTLS"
            if smtp.user is not None:
                client.login(smtp.user, smtp.password or "")
            refused = client.send_message(mail)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    if refused:
        log.warning(
            "the SMTP server refused recipients of an e-mail: %s", ", ".join(sorted(refused))
        )
    return ""
