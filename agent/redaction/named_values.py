"""Finds the values of secret keys in TOML, JSON, INI, environments, headers and arguments.

A secret key is a name whose value is secret, such as ``password`` or ``api_key``.

If the syntax of a value is invalid, all text that could belong to the value is found. Each value
is scanned once, so the time is linear in the length of the text.
"""

import re
from collections.abc import Iterator
from typing import Final

from agent.redaction.shapes import PLACEHOLDER

_LONG: Final = (
    r"passw(?:or)?d|passphrase|secret|token|credential|cookie|authori[sz]ation"
    r"|(?:api|private|access|signing|encryption|shared|license|session)[_\-. ]?key"
)
# Short words match as whole words only: `bypass` is not the name of a secret.
_SHORT: Final = r"(?<![A-Za-z])(?:pass|pwd|pw|auth|pin|psk|community)(?![A-Za-z])"
# Matches the end of a secret key and the sign after it: `password_2 = ` in `db_password_2 = 1`.
# `word` is the word that makes the key secret, and `tail` is the part of the key after this word.
_NAME: Final = re.compile(
    # The first letters of all words. Without this line, the search takes up to three times as long.
    r"(?i)(?=[aceplst])"
    rf"(?P<word>{_LONG}|{_SHORT}|(?-i:(?<=[a-z])Pass(?![a-z])))"
    r"(?P<tail>[\w\-.]{0,64}+)"
    r"""(?:\\?["'])?\]?[^\S\n]{0,16}+(?P<sign>=>?|:(?!//))[^\S\n]{0,64}+"""
)
# Matches an option of a command line with its value: `--password value`.
_OPTION: Final = re.compile(
    rf"""(?i)((?<![\w\-])--?[\w\-]{{0,32}}?(?:{_LONG}|{_SHORT})s?["']?,?[^\S\n]{{1,16}}+["']?)"""
    r"""(?![\s\-:=])[^\s"',]++"""
)
_WORKING_DIRECTORIES: Final = frozenset({"PWD", "OLDPWD"})
"""Variables of the POSIX shell. Their names resemble names of passwords, but their values are not
secret."""
# Each name of a secret, converted to lower case, contains one of these parts.
_STEMS: Final = (
    "pass", "secret", "token", "credential", "cookie", "auth", "key", "pwd", "pw", "pin", "psk",
    "community",
)  # fmt: skip
# Matches if the word goes on with letters that are not a plural ending: `izer` in `tokenizer`.
_LETTERS_GO_ON: Final = re.compile(r"(?!s(?![a-z])|es(?![a-z]))[a-z]")
# Matches the end of a name whose value describes a secret, but is not secret: `token_file`.
_DESCRIBES_A_SECRET: Final = re.compile(
    r"(?i)(?:^|[_\-.]|(?<=[a-z])(?=[A-Z]))(?:file|path|dir|directory|place|source|url|uri|encoding"
    r"|type|name|id|ids|count|length|bytes|max|min|limit|seconds|days|age|expiry|expires|at|sock"
    r"|state|status|method|mode|realm|level|required|enabled|refused|shared|field|hash)s?$"
)
# Matches a value that is not secret: a constant, a placeholder, an empty or a masked value.
_NO_SECRET: Final = re.compile(
    rf"(?i)(?:bearer {PLACEHOLDER}"
    r"""|(?:true|false|null|none)(?![\w\-])|"…"|""(?!")|''(?!')|\*\*\*|"\*\*\*"|'\*\*\*')"""
)
_QUOTED: Final = re.compile(r""""(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'""")
# Matches a string of TOML in which a backslash escapes nothing.
_LITERAL: Final = re.compile(r"'[^'\n]*+'")
# Matches what can follow a value: a comment, the end of the line or table, or the next key.
_CAN_FOLLOW: Final = re.compile(
    r"""[^\S\n]*+(?:\r?\n|\Z|\#[^"'\n]*+(?:\n|\Z)|;|[}\])]++(?:[\s,;]|\Z)|,[^\S\n]*+(?:\n|\Z|[}\])]"""
    r"""|(?P<q>["'])[\w\-. ]{1,64}(?P=q)[^\S\n]*+[:=,]|[\w\-.]{1,64}+[^\S\n]*+=))"""
)
_REST_OF_LINE_MAX: Final = 2000
"""Number of characters after a value in which quotes are counted."""
# Matches a list or table without nested lists or tables.
_LIST: Final = re.compile(
    r"""[\[{](?:[^\]}\[{"'\n]|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')*+[\]}]"""
)
# Matches a line that ends a list or table.
_LAST_LINE: Final = re.compile(r"""(?:[^\n]*["'\w]|[^\S\n]*)[^\S\n]*[\]}][\s,;)\]}]*(?:\n|\Z)""")
# Matches the end of an unquoted value whose key does not begin the line: a quote or the line's end.
_CLOSING_QUOTE: Final = re.compile(r"""\\?["'](?=[\s,:;})\]>]|\Z)|\n|\Z""")
_LINE_END: Final = re.compile(r"\n|\Z")
# Matches what can come before the name of a secret in its line.
_BEGINS_A_LINE: Final = re.compile(r"""[\s#;>]*(?:export\s+|set\s+)?["']?[\w.\-]*""")
_LINE_HEAD_MAX: Final = 80
"""If the text between the start of a line and the name of a secret is longer than this, the name
does not count as the beginning of the line."""
# Matches a word after which the value or the line ends.
_ONE_WORD: Final = re.compile(r"""[^\s"',;]{1,256}+(?=["']?(?:[,;}\])]|[^\S\n]*+(?:\n|\Z)))""")
# Prose often has a colon after these words. So the text after the colon is masked only if it is a
# single word.
_SOFT: Final = re.compile(r"(?i)(?:token|credential|.*key)", re.DOTALL)
# Matches the white space before the next line with text, unless that next line begins with a key
# or a bracket.
_NEXT_LINE: Final = re.compile(
    r"""\s*+(?!\[|(?:[\w.\-]{1,64}+|"[\w. \-]{1,64}"|'[\w. \-]{1,64}')[^\S\n]*+=)(?=\S)"""
)


def named_value_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the value of each secret key. The spans can overlap."""
    if _may_name_a_secret(text):
        yield from _assigned_value_spans(text)
        yield from ((option.end(1), option.end()) for option in _OPTION.finditer(text))


def named_values_in(text: str) -> Iterator[str]:
    """Yield the values of secret keys, without quotes, except those of options."""
    for begin, end in _assigned_value_spans(text) if _may_name_a_secret(text) else ():
        yield text[begin:end].strip(" \t\"'\r\n[]{},")


def names_a_secret(key: str) -> bool:
    """Return whether ``key`` is the name of a secret."""
    match = None if key in _WORKING_DIRECTORIES else _NAME.search(f"{key}=")
    return match is not None and _is_secret(match)


def _may_name_a_secret(text: str) -> bool:
    lower = text.lower()
    return any(stem in lower for stem in _STEMS)


def _assigned_value_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the value after each secret key and a sign such as ``=``."""
    position = 0
    while (name := _NAME.search(text, position)) is not None:
        position = name.end()
        if _is_secret(name):
            begin, end = _span(text, name)
            if begin < end:
                yield begin, end
            position = max(end, position)


def _is_secret(name: re.Match[str]) -> bool:
    tail = name["tail"]
    return not _LETTERS_GO_ON.match(tail) and not _DESCRIBES_A_SECRET.search(tail)


def _span(text: str, name: re.Match[str]) -> tuple[int, int]:
    """Return start and end of the value after ``name``. They are equal if there is no value."""
    at = name.end()
    if _NO_SECRET.match(text, at):
        return at, at
    first = text[at : at + 1]
    if (quotes := text[at : at + 3]) in {'"""', "'''"}:
        end = text.find(quotes, at + 3)
        while end >= 0 and not _can_end_at(text, end + 3, first):
            end = text.find(quotes, end + 1)
        return at, len(text) if end < 0 else end + 3
    if first and first in "\"'":
        return _quoted(text, at)
    if first and first in "[{":
        return at, _end_of_list(text, at)
    return _unquoted(text, name)


def _unquoted(text: str, name: re.Match[str]) -> tuple[int, int]:
    at = name.end()
    if name["sign"] == ":" and _SOFT.fullmatch(name["word"]):
        word = _ONE_WORD.match(text, at)
        return at, word.end() if word else at
    begins_line = _begins_a_line(text, name.start())
    if at < len(text) and text[at] not in "\r\n":
        return at, _find(_LINE_END if begins_line else _CLOSING_QUOTE, text, at)
    if begins_line and name["sign"] == "=" and (next_line := _NEXT_LINE.match(text, at)):
        return next_line.end(), _find(_LINE_END, text, next_line.end())
    return at, at


def _quoted(text: str, at: int) -> tuple[int, int]:
    """Return start and end of a quoted value.

    If its quotes are not balanced, the value includes all lines that could belong to it.
    """
    for form in (_QUOTED, _LITERAL):
        match = form.match(text, at)
        if match is not None and _can_end_at(text, match.end(), text[at]):
            return at + 1, match.end() - 1
    end = _find(_LINE_END, text, at)
    if text.find(text[at], at + 1, end) < 0:
        while next_line := _NEXT_LINE.match(text, end):
            end = _find(_LINE_END, text, next_line.end())
            if text.find(text[at], next_line.end(), end) >= 0:
                break
    return at, end


def _end_of_list(text: str, at: int) -> int:
    """Return the end of a list or a table.

    If the list is nested or invalid, this is the end of the last line that could belong to it.
    """
    flat_list = _LIST.match(text, at)
    if flat_list is not None and _can_end_at(text, flat_list.end(), '"'):
        return flat_list.end()
    end = _find(_LINE_END, text, at)
    is_last = _LAST_LINE.match(text[at:end])
    while not is_last and (next_line := _NEXT_LINE.match(text, end)):
        begin, end = next_line.end(), _find(_LINE_END, text, next_line.end())
        is_last = _LAST_LINE.match(text[begin:end])
    return end


def _can_end_at(text: str, at: int, quote: str) -> bool:
    """Return whether a value can end at ``at``: the text after ``at`` must not belong to it."""
    if not _CAN_FOLLOW.match(text, at):
        return False
    rest_of_line = text[at : at + _REST_OF_LINE_MAX].partition("\n")[0]
    return rest_of_line.count(quote) % 2 == 0


def _begins_a_line(text: str, at: int) -> bool:
    start = max(0, at - _LINE_HEAD_MAX)
    line = text.rfind("\n", start, at)
    if line < 0 and start > 0:
        return False
    return _BEGINS_A_LINE.fullmatch(text, line + 1, at) is not None


def _find(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the start of the next match, or the end of the text if there is none."""
    match = pattern.search(text, at)
    return match.start() if match else len(text)
