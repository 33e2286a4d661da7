"""Masks secrets in a configuration file, line by line. Works even if the syntax is wrong."""

import re
from collections.abc import Iterator
from typing import Final

from agent.redaction.named_values import named_values_in, names_a_secret
from agent.redaction.redactor import Redactor
from agent.redaction.shapes import MASK
from agent.redaction.userinfo import replace_userinfo, userinfo_of

_SECTION: Final = re.compile(r"[^\S\n]*\[{1,2}([^\]\n]{1,200})\]{1,2}")
# Matches a line whose key ends with `proxy`. The second group is the value.
_PROXY: Final = re.compile(
    r"""(?i)([\s#;]*["']?[\w.\-]{0,64}?proxy["']?\s{0,16}[=:]\s{0,16})(.*)"""
)
# Matches a value that begins with a URL. The second group is the text after the URL's `://`.
_URL: Final = re.compile(r"""([=:\[,][ \t"']{0,16}[A-Za-z][A-Za-z0-9+.\-]{0,32}://)(.*)""")
_BLANKS_AND_QUOTES: Final = " \t\"'"
_COMMENT: Final = re.compile(  # a comment that mentions a secret
    r"(?i)([^\n]*?#(?:(?![=:])[^\n])*?(?:passw(?:or)?d|passphrase|secret|token|\bkey|credential)s?\b)"
    r"(?![\w\-]{0,64}\s*=)[^\n]+"
)
SHORTEST_VALUE: Final = 6
"""Minimum length of a secret value that is masked wherever it occurs in a text. A shorter value is
masked only after its key, because it could also be a part of an ordinary word."""
_COMMENT_LINE_MAX: Final = 4000
"""Maximum length of a line in which a comment is searched for the names of secrets. In a longer
line, the whole comment is removed."""


def redact_configuration(text: str, redactor: Redactor) -> str:
    """Return the text of a TOML file with masked secrets. Keys and structure are unchanged."""
    lines, is_secret_section = [], False
    for line in redactor.mask_known(text).split("\n"):
        if section := _SECTION.match(line):
            is_secret_section = names_a_secret(section[1].strip())
        elif is_secret_section and line.strip():
            # The section has the name of a secret, so all of its values are masked.
            line = f"{line.partition('=')[0].rstrip()} = {MASK}" if "=" in line else MASK  # noqa: PLW2901
        lines.append(_mask_comment(_mask_proxy_credentials(line)))
    return redactor.redact("\n".join(lines))


def secrets_in_configuration(text: str) -> Iterator[str]:
    """Yield the secrets in a file: values whose keys name a secret, and credentials in URLs."""
    yield from (value for value in named_values_in(text) if len(value) >= SHORTEST_VALUE)
    for line in text.split("\n"):
        # If a URL starts before the last "@", the text from the start of the URL to this "@"
        # contains the user and the password.
        before, at, host = line.rpartition("@")
        if at and (match := _PROXY.fullmatch(before) or _URL.search(before)):
            yield from userinfo_of(f"{match[2].lstrip(_BLANKS_AND_QUOTES)}@{host}")


def _mask_proxy_credentials(line: str) -> str:
    match = _PROXY.fullmatch(line)
    return line if match is None else match[1] + _mask_proxy_value(match[2])


def _mask_proxy_value(value: str) -> str:
    if "@" not in value:
        return value
    quote = value[0] if value[0] in "\"'" else ""
    return quote + replace_userinfo(value[len(quote) :], f"{MASK}@")


def _mask_comment(line: str) -> str:
    if "#" not in line:
        return line
    if len(line) > _COMMENT_LINE_MAX:
        return line.partition("#")[0]
    return _COMMENT.sub(rf"\1 {MASK}", line)
