"""Finds user and password in URLs (RFC 3986, section 3.2.1), even in invalid URLs.

Users often do not escape passwords, so a password can contain `/`, `@`, `#`, `?`, `%` and blanks.
The text before the last `@` is treated as user and password, unless it is clearly a host and a
path. In doubt, the host counts as a part of the password.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

_SLASHES: Final = r":\\?/\\?/"
# A quote ends a value only if valid syntax follows. If not, it can be part of a password.
_CLOSING_QUOTE: Final = r"""["'](?=[\s,:;})\]>]|$)"""
_WORD: Final = re.compile(rf"""(?:[^\s"'\\]++|\\.|(?!{_CLOSING_QUOTE})["'])++""")
_SCHEME_END: Final = re.compile(_SLASHES)
_SCHEME: Final = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*+{_SLASHES}")
_ENCODED_SCHEME_END: Final = re.compile(r"(?i)%3a%2f%2f")
_ENCODED_WORD: Final = re.compile(r"[^\s\"'&]++")

# Matches the start of `http://user:a password with blanks@host`, but not `http://host:80 text`: a
# port after the colon means that there is no password.
_WITH_BLANKS: Final = re.compile(
    rf"""({_SLASHES})[^\s/?\#@:\[\]"']{{1,64}}+:(?!\d{{1,5}}(?:[\s/?\#,;:)\]}}"']|$))(?=\S)"""
)
_BLANKS_WINDOW: Final = 512
"""Number of characters after ``user:`` that are searched for the ``@`` after a password with
blanks."""

_HOST_AND_PATH: Final = re.compile(
    # The last label of a name begins with a letter (RFC 3696, section 2).
    r"(?:[A-Za-z0-9\-]++\.(?:[A-Za-z0-9\-]++\.)*+[A-Za-z][A-Za-z0-9\-]*+"
    r"|(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.%]{2,64}\])(?::\d{1,5})?)"
    r"[/?\#][^:@]*+"
)
# Characters that can stand directly before a user.
_LEADING: Final = " :,;\"'([{<>|"
# Schemes before an address without a password: `mailto:user@host`.
_ADDRESS_SCHEMES: Final = re.compile(r"(?i)(?:mailto|sips?|xmpp|acct|im)")
_MAC_IPV6_OR_TIME: Final = re.compile(
    r"(?:[0-9A-Fa-f]{1,2}(?:[:\-][0-9A-Fa-f]{1,2}){5}|[0-9A-Fa-f:.]*::[0-9A-Fa-f:.]*"
    r"|\d{1,2}:\d{2}(?::\d{2})?)"
)


def userinfo_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of user and password in everything that resembles a URL.

    The spans can overlap.
    """
    if "@" in text:
        yield from _with_blanks(text)
        for word in _WORD.finditer(text):
            yield from _in_word(word[0], word.start())
    if "%40" in text:
        yield from _percent_encoded(text)


def replace_userinfo(url: str, replacement: str = "") -> str:
    """Return ``url`` with ``replacement`` instead of user and password.

    ``url`` is one URL, or ``host:port`` with or without user and password.
    """
    before, at, address = url.rpartition("@")
    if not at:
        return url
    scheme = _SCHEME.match(before)
    head = scheme[0] if scheme else ""
    return f"{head}{replacement}{address}"


def userinfo_of(url: str) -> tuple[str, ...]:
    """Return the secrets in one URL: ``user:password``, the password, and the decoded password.

    If the URL has no password, the secrets are the user and the decoded user.
    """
    before, at, _ = url.rpartition("@")
    if not at:
        return ()
    scheme = _SCHEME.match(before)
    userinfo = before[scheme.end() :] if scheme else before
    _, colon, password = userinfo.partition(":")
    # Without a password, the user can be the secret: some services accept a token as the user.
    return (userinfo, password, unquote(password)) if colon else (userinfo, unquote(userinfo))


def _in_word(word: str, offset: int) -> Iterator[tuple[int, int]]:
    scheme = _SCHEME_END.search(word)
    begin = scheme.end() if scheme else len(word)
    head = word[:begin]
    authority, at, _ = word[begin:].rpartition("@")
    has_userinfo = at and not _HOST_AND_PATH.fullmatch(authority)
    if has_userinfo:
        yield offset + begin, offset + begin + len(authority)
    # Without a scheme, a password can contain `://`.
    yield from _without_scheme(word if has_userinfo and "@" not in head else head, offset)


def _without_scheme(word: str, offset: int) -> Iterator[tuple[int, int]]:
    """Find ``user:password@host``, but not ``user@host``, mail and hardware addresses."""
    before, _, host = word.rpartition("@")
    start = len(before) - len(before.lstrip(_LEADING))
    colon = before.find(":", start)
    if colon < 0 or not host:
        return
    start = max(start, before.rfind("=", start, colon) + 1)
    user = before[start:colon]
    is_windows_path = len(user) == 1 and before[colon + 1 : colon + 2] == "\\"
    if not (
        not user
        or _SCHEME_END.match(before, colon)
        or "/" in user
        or is_windows_path
        or _ADDRESS_SCHEMES.fullmatch(user)
        or _MAC_IPV6_OR_TIME.fullmatch(before[start:])
    ):
        yield offset + start, offset + len(before)


def _with_blanks(text: str) -> Iterator[tuple[int, int]]:
    """Find user and password of each URL whose password contains blanks."""
    end = 0
    for match in _WITH_BLANKS.finditer(text):
        if match.start() < end:
            continue
        window = text[match.end() : match.end() + _BLANKS_WINDOW].partition("\n")[0]
        if quote := re.search(_CLOSING_QUOTE, window):
            window = window[: quote.start()]
        at = window.rfind("@")
        if at >= 0:
            end = match.end() + at
            yield match.end(1), end


def _percent_encoded(text: str) -> Iterator[tuple[int, int]]:
    """Find user and password of a URL that is percent-encoded inside of another URL."""
    for word in _ENCODED_WORD.finditer(text):
        scheme, at = _ENCODED_SCHEME_END.search(word[0]), word[0].rfind("%40")
        if scheme is not None and at >= scheme.end():
            yield word.start() + scheme.end(), word.start() + at
