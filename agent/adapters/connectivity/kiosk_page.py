"""Reads whether the kiosk's browser has a page open (``/json/list`` of its DevTools port)."""

from agent.adapters.connectivity.local_http import exchange_local
from collectors.shared.devtools import open_pages, parse_debug_url
from collectors.shared.http import HttpRequest


async def read_page_fault(url: str) -> str | None:
    """Return what is wrong with the kiosk's page; None if a page is open. Never raises.

    The title and the address of the page are not used, because they are private.

    Args:
        url: the address of the browser's DevTools port, such as ``http://127.0.0.1:9222``. The
            configuration allows only loopback.
    """
    try:
        address = parse_debug_url(url)
        request = HttpRequest("GET", address.authority, "/json/list")
        return fault_of(await exchange_local((address.host, address.port), request))
    except ConnectionRefusedError:
        return "no browser listens at kiosk_debug_url"
    except OSError:
        return "the browser does not answer"
    except ValueError as error:
        return str(error)


def fault_of(body: bytes) -> str | None:
    """Return the fault that a list of DevTools targets shows; None if a page is open.

    Raises ValueError if ``body`` is not such a list.
    """
    return None if open_pages(body) else "the browser has no page open"
