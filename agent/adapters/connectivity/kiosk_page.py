"""Reads whether the kiosk's browser has a page open (``/json/list`` of its DevTools port)."""

import json
from typing import Final
from urllib.parse import urlsplit

from agent.adapters.connectivity.local_http import exchange

_INNER: Final = ("devtools:", "chrome-extension:", "chrome-untrusted:")


async def read_page(url: str) -> str | None:
    """Return what is wrong with the kiosk's page; None if a page is open. Never raises.

    The title and the address of the page are not used, because they are private.

    Args:
        url: ``http://127.0.0.1:9222``. The configuration allows only loopback.
    """
    parts = urlsplit(url)
    host = parts.hostname or "127.0.0.1"
    where = "127.0.0.1" if host == "localhost" else host, parts.port or 80
    authority = f"[{host}]:{where[1]}" if ":" in host else f"{host}:{where[1]}"
    request = f"GET /json/list HTTP/1.1\r\nHost: {authority}\r\n\r\n"
    try:
        return fault_of(await exchange(where, request.encode("ascii")))
    except ConnectionRefusedError:
        return "no browser listens at kiosk_debug_url"
    except OSError:
        return "the browser does not answer"
    except ValueError:
        return "the DevTools port did not list its pages"


def fault_of(body: bytes) -> str | None:
    """Return what a list of targets shows. Raises ValueError if it is not such a list."""
    try:
        listed = json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(listed, list):
        raise ValueError("not a list")
    pages = [each for each in listed if isinstance(each, dict) and each.get("type") == "page"]
    urls = [str(each.get("url", "")) for each in pages]
    has_page = any(not each.startswith(_INNER) for each in urls)
    return None if has_page else "the browser has no page open"
