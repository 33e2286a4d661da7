"""Reads the title of a web server's page "/", the realm of its login and its Server header."""

import re

from collectors.network.discoveries import OpenPort
from collectors.network.observations import Evidence
from collectors.network.questions.connection import connect
from collectors.network.questions.page_title import TEXT_MAX, parse_realm, parse_title
from collectors.shared.addresses import join_host_port
from collectors.shared.http import HttpError, HttpReply, HttpRequest, exchange
from collectors.shared.text import clean_text

BODY_MAX_BYTES = 64 * 1024
_HP_MODEL = re.compile(r"HP HTTP Server; (?:Hewlett-Packard )?(HP .+?)(?: - \w+)?;")


async def query_web(open_port: OpenPort, *, is_tls: bool) -> tuple[Evidence, ...]:
    """Request "/" and return the evidence in the reply, or (). The caller sets a time-out."""
    host = join_host_port(open_port.address, open_port.port)
    request = HttpRequest("GET", host, "/", (("Accept", "text/html"),))
    try:
        async with connect(open_port.address, open_port.port, is_tls=is_tls) as (reader, writer):
            reply = await exchange(reader, writer, request, BODY_MAX_BYTES)
    except (OSError, HttpError):
        return ()
    return read_web(open_port, reply)


def read_web(open_port: OpenPort, reply: HttpReply) -> tuple[Evidence, ...]:
    """Return the evidence in a reply, or (). Never raises."""
    title, realm = parse_title(reply), parse_realm(reply)
    server = clean_text(reply.header("server") or "", TEXT_MAX)
    model = _HP_MODEL.match(server)
    if not (title or realm or server):
        return ()
    return (
        Evidence(
            open_port.address,
            open_port.port,
            make_model=model[1] if model else None,
            title=title,
            realm=realm,
            server=server or None,
        ),
    )
