"""Redirect URIs that clients may register.

A web client uses https. A program on the user's computer uses http with a loopback address, or a
private-use scheme. A private-use scheme must be a reversed domain name or one of `KNOWN_SCHEMES`.
Reversed domain names prevent two programs from using the same scheme by accident (RFC 8252, 7.1 and
8.4). Another program can still register itself for the scheme and receive the code. Without the
secret of PKCE, which every client must use, it cannot exchange the code. Redirect URIs are compared
as text (RFC 9700, 4.1.3). The exception is the port of a loopback address, which differs each time
the program starts (RFC 8252, 7.3). A URI that browsers might parse differently, for example with a
user name or a backslash, is not accepted.
"""

import re
from typing import Final

URI_MAX: Final = 512
URIS_MAX: Final = 10
KNOWN_SCHEMES: Final = ("cursor", "vscode", "vscode-insiders", "windsurf")
"""Schemes that common desktop clients of the agent protocol use, although they are not reversed
domain names.
"""
_PATH_AND_QUERY: Final = (
    r"(?:/[A-Za-z0-9\-._~%!$&'()*+,;=:@/]*)?(?:\?[A-Za-z0-9\-._~%!$&'()*+,;=:@/?]*)?"
)
_LOOPBACK: Final = re.compile(
    rf"http://(?P<host>127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{{1,5}})?(?P<rest>{_PATH_AND_QUERY})"
)
_HTTPS: Final = re.compile(
    rf"https://(?P<host>(?:[a-z0-9](?:[a-z0-9\-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9\-]*[a-z0-9])?)"
    rf"(?P<port>:[0-9]{{1,5}})?(?P<rest>{_PATH_AND_QUERY})"
)
# Either scheme://host/path, or scheme:/path without a host.
_PRIVATE: Final = re.compile(
    rf"(?P<scheme>[a-z][a-z0-9\-]*(?:\.[a-z0-9\-]+)+|{'|'.join(KNOWN_SCHEMES)})"
    rf":(?://[A-Za-z0-9\-._]+|(?=/(?!/))){_PATH_AND_QUERY}"
)


def is_redirect_uri(uri: str) -> bool:
    match = _LOOPBACK.fullmatch(uri) or _HTTPS.fullmatch(uri) or _PRIVATE.fullmatch(uri)
    return len(uri) <= URI_MAX and match is not None


def is_same_redirect_uri(uri: str, registered_uri: str) -> bool:
    """Return whether ``uri`` is the registered redirect URI, except for the port of loopback."""
    if uri == registered_uri:
        return True
    registered_match, sent_match = _LOOPBACK.fullmatch(registered_uri), _LOOPBACK.fullmatch(uri)
    if registered_match is None or sent_match is None or len(uri) > URI_MAX:
        return False
    return registered_match.group("host", "rest") == sent_match.group("host", "rest")


def host_of(uri: str) -> str | None:
    """Return the host of an https URI, with its port. Return None for other redirect URIs."""
    match = _HTTPS.fullmatch(uri)
    return None if match is None else match["host"] + (match["port"] or "")


def form_source(uri: str) -> str:
    """Return the source expression with which ``form-action`` permits a redirect to ``uri``.

    ``form-action`` is a directive of the Content Security Policy. Browsers apply it to the address
    of a form, and also to the redirect that answers the form. A policy cannot contain the address
    [::1], so for this address only the scheme is returned.
    """
    host = host_of(uri)
    if host is not None:
        return f"https://{host}"
    if (private := _PRIVATE.fullmatch(uri)) is not None:
        return f"{private['scheme']}:"
    match = _LOOPBACK.fullmatch(uri)
    if match is None or match["host"] == "[::1]":
        return "http:"
    return f"http://{match['host']}:*"
