"""Where a browser may be sent with a code: https, or a program on the person's own machine.

They are compared as they are written (RFC 9700, 4.1.3), but for the port on loopback, which such a
program is given anew each time it listens (RFC 8252, 7.3). What a browser could read otherwise than
we do, such as a name before an @ or a backslash, is no redirect URI at all.
"""

import re
from typing import Final

URI_MAX: Final = 512
URIS_MAX: Final = 10
_REST: Final = r"(?:/[A-Za-z0-9\-._~%!$&'()*+,;=:@/]*)?(?:\?[A-Za-z0-9\-._~%!$&'()*+,;=:@/?]*)?"
_LOOPBACK: Final = re.compile(
    rf"http://(?P<host>127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{{1,5}})?(?P<rest>{_REST})"
)
_HTTPS: Final = re.compile(
    rf"https://(?P<host>(?:[a-z0-9](?:[a-z0-9\-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9\-]*[a-z0-9])?)"
    rf"(?P<port>:[0-9]{{1,5}})?(?P<rest>{_REST})"
)


def is_redirect_uri(uri: str) -> bool:
    fits = _LOOPBACK.fullmatch(uri) or _HTTPS.fullmatch(uri)
    return len(uri) <= URI_MAX and fits is not None


def is_same(asked: str, registered: str) -> bool:
    """Tell whether ``asked`` is what was registered. The second is a redirect URI."""
    if asked == registered:
        return True
    ours, theirs = _LOOPBACK.fullmatch(registered), _LOOPBACK.fullmatch(asked)
    if ours is None or theirs is None or len(asked) > URI_MAX:
        return False
    return ours.group("host", "rest") == theirs.group("host", "rest")


def host_of(uri: str) -> str | None:
    """Return the host that will get the answer; None where it is the person's own machine."""
    match = _HTTPS.fullmatch(uri)
    return None if match is None else match["host"] + (match["port"] or "")


def form_source(uri: str) -> str:
    """Return what lets a form lead there, in the words of a Content Security Policy.

    Browsers hold the redirect that answers a form to ``form-action``, too. A policy has no word
    for the address [::1], so its scheme stands for it.
    """
    host = host_of(uri)
    if host is not None:
        return f"https://{host}"
    match = _LOOPBACK.fullmatch(uri)
    if match is None or match["host"] == "[::1]":
        return "http:"
    return f"http://{match['host']}:*"
