"""What a web server tells of itself: the title of its page "/" and its Server header."""

import html
import re

from collectors.network.observations import Evidence, OpenPort
from collectors.network.questions.connection import connect
from collectors.shared.addresses import join_host_port
from collectors.shared.http import HttpError, HttpReply, HttpRequest, exchange
from collectors.shared.text import clean_text

BODY_MAX_BYTES = 64 * 1024
TEXT_MAX = 255
_TITLE = re.compile(rb"<title[^>]{0,256}>([^<]{0,2048})", re.IGNORECASE)


async def ask_web(open_port: OpenPort, *, is_tls: bool) -> tuple[Evidence, ...]:
    """Get "/" and read it; () where nothing was told. The caller bounds the time."""
    host = join_host_port(open_port.address, open_port.port)
    request = HttpRequest("GET", host, "/", (("Accept", "text/html"),))
    try:
        async with connect(open_port.address, open_port.port, is_tls=is_tls) as (reader, writer):
            reply = await exchange(reader, writer, request, BODY_MAX_BYTES)
    except (OSError, HttpError):
        return ()
    title, server = parse_title(reply), clean_text(reply.header("server") or "", TEXT_MAX)
    if not (title or server):
        return ()
    return (Evidence(open_port.address, open_port.port, title=title, server=server or None),)


def parse_title(reply: HttpReply) -> str | None:
    """Return the title of a page, its entities resolved; None without one. Never raises."""
    found = _TITLE.search(reply.body)
    if found is None:
        return None
    declared = (reply.header("content-type") or "").lower()
    is_latin = "iso-8859" in declared or "windows-1252" in declared
    text = found[1].decode("cp1252" if is_latin else "utf-8", "replace")
    return clean_text(html.unescape(text), TEXT_MAX) or None
