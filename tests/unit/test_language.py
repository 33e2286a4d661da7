"""Names, messages, comments and documents use the terms of docs/glossary.md.

``TERMS`` lists each term to avoid with the standard term and two patterns. The first pattern is
matched against identifiers, after they are split into words: ``note_heard`` and ``NoteHeard``
become ``_note_heard_`` and ``_Note_Heard_``. The second pattern is matched against prose:
documents, comments, docstrings, and messages for users.

A failed test prints the first 20 hits. To write all hits to a file, set ``LANGUAGE_REPORT``::

    LANGUAGE_REPORT=build/language.txt pytest -n0 tests/unit/test_language.py
"""

import ast
import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.paths import ROOT

PRODUCT: Final = ("agent", "collectors", "controlplane", "packaging")
GLOSSARY: Final = Path("docs/glossary.md")
AVOID_HEADING: Final = "## Terms to avoid"
SKIPPED: Final = (
    Path("tests/unit/test_language.py"),  # the list of terms
    Path("tests/fixtures"),  # texts that were captured from other programs
)

INTERFACE_NAMES: Final[dict[str, str]] = {
    "asked_by": "the option --asked-by of venue-control",
    "stamp": "alembic.command.stamp",
}
"""Identifiers that contain a term to avoid, each with the interface that defines the identifier."""

EXEMPT_NAMES: Final = {
    ("agent/adapters/service_manager/windows/host.py", "tell"): "io.IOBase.tell",
    ("collectors/application/readers/peripherals.py", "person"): "hashlib.blake2s, person=",
}
"""Names that contain a term to avoid, because a function of a library has this name or parameter.

Maps (file, name) to the function. Only this file may use the name.
"""


@dataclass(frozen=True)
class Term:
    """A term to avoid.

    Args:
        avoid: The term as docs/glossary.md writes it.
        use: The standard term.
        name: A pattern for identifiers that are written with an underscore around each word. It
            ignores letter case, except in ``(?-i:...)``.
        prose: A pattern for prose.
    """

    avoid: str
    use: str
    name: str = ""
    prose: str = ""


TERMS: Final = (
    Term(
        "wish, granting",
        "pending request, dispatch",
        r"_(wish|wishes|granting)_",
        r"\bwish(es|ed)?\b",
    ),
    Term(
        "silence (of a device)",
        "offline interval",
        r"(?-i:_Gaps?_)",
        r"\b(falls?|fell|fallen) silent\b|\bsilences? of (a|the|its) devices?\b",
    ),
    Term(
        "heard, listened",
        "online, last seen, received",
        r"_(hears?|(un)?heard|listened)_",
        r"\b(hears?|(un)?heard)\b",
    ),
    Term("standing", "device status, access, link state", r"_standings?_", r"(?<![\w-])standing\b"),
    Term(
        "told, tells",
        "notified, firing, reported, returned",
        r"_((un)?told|tells?|telling)_",
        r"\btold\b|\bTells?\b",
    ),
    Term(
        "calm, hold, dark",
        "`keep_firing_for`, `for`, site outage",
        r"_calm_",
        r"\bcalm\b|\b(goes|went|gone|is) dark\b",
    ),
    Term(
        "notice",
        "alert, notification",
        r"_notices?_",
        r"(?<!copyright )(?<!licence )(?<!license )\bnotices?\b",
    ),
    Term(
        "quiet",
        "maintenance window",
        r"_quiet_(?!hours)",
        r"(?<!\blocations )(?<!--)\bquiet\b(?! hours)",
    ),
    Term("Place (of a venue), places", "location", r"(?-i:_Place_)|_places_", ""),
    Term(
        "look",
        "poll, check, query, look-up",
        r"_(looks|looked|looking)_|_look_(?!up_)",
        r"\b(a|one|this|that|each|every|next|last|first|second) looks?\b(?!-?up)"
        r"|\blooked (at|for)\b",
    ),
    Term(
        "Seer, Seen, stamp",
        "viewer, snapshot, fingerprint",
        r"_seer_|(?<!_last)(?-i:_Seen_)|_stamps?_",
        r"\bseer\b",
    ),
    Term("beat, beaten", "heartbeat", r"_(beats?|beaten)_", r"\b(beats?|beaten)\b"),
    Term("sighting", "discovery, observation", r"_sightings?_", r"\bsightings?\b"),
    Term("gathered", "collected facts", r"_gathered_", ""),
    Term("found (as a noun)", "match, result, the name of the thing", r"(?<!_not)_found_", ""),
    Term("asked", "the name of the thing: query, request", r"_asked_", ""),
    Term("granted (as a noun)", "grant", r"(?-i:_Granted_)", ""),
    Term("shown", "view, visible, the name of the thing", r"_shown_", ""),
    Term("tone", "severity", r"_tones?_", r"\btones?\b"),
    Term("moment", "timestamp, time", r"_moments?_", r"\bmoments\b"),
    Term(
        "strip (of a device's history)",
        "timeline",
        # `Strip` in a name, and `strip` at the end of `device_strip`, but not `str.strip`.
        r"(?-i:_Strips?_)|(?-i:_strip_$)(?<!^_strip_)",
        "",
    ),
    Term("stage", "environment", r"_stages?_", ""),
    Term("shelf", "catalog builder", r"_(shelf|shelves)_", r"\b(shelf|shelves)\b"),
    Term("deal, trade", "transaction", r"_(deals?|trades?)_", r"\bdeals\b"),
    Term("shop", "day generator, merchant", r"_shops?_", ""),
    Term("say, said", "set, format, report", r"_(say|says|said)_", r"\bsaid\b|\bsays so\b"),
    Term("in words", "format, describe", r"_in_words_", r"\bin words\b"),
    Term("guard", "middleware, check", r"_guards?_(?<!^_Type_Guard_)", r"\bguards?\b"),
    Term(
        "otherwise than, another than",
        "different from, changed",
        "",
        r"\b(otherwise|another) than\b",
    ),
    Term(
        "cure, mend", "fix", r"_(cures?|cured|mends?|mended)_", r"\b(cures?|cured|mends?|mended)\b"
    ),
    Term(
        "house, floor, room (of code)",
        "codebase, layer, package",
        r"_house_",
        r"\b(the|our) house\b|\bno room is\b|\bfloors (above|below|of)\b"
        r"|\b(a|the|this) floor (above|below|that|of)\b",
    ),
    Term(
        "person, somebody",
        "user, operator, technician",
        r"_(persons?|somebody)_",
        r"\b[Ss]omebody\b|\b[Tt]he person\b",
    ),
    Term("proven, prove", "tested, verified", r"_(proven|prove|proves)_", r"\b(proven|proves?)\b"),
    Term("is well", "is healthy", "", r"\ball is well\b|\bis well\b(?! (maintained|known))"),
)


class Hit(NamedTuple):
    file: str
    line: int
    term: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text!r} (avoid: {self.term})"


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAME: Final = re.compile("|".join(f"(?:{t.name})" for t in TERMS if t.name), re.IGNORECASE)
_PROSE: Final = re.compile("|".join(f"(?:{t.prose})" for t in TERMS if t.prose))
_IS_PROSE: Final = re.compile(r"[A-Za-z]{2,},? [a-z]+")
_CODE: Final = re.compile(r"```.*?```|`[^`\n]+`|<!--.*?-->|\]\([^)]*\)", re.DOTALL)
# Python's tokenizer would take three times as long as this pattern.
_PYTHON: Final = re.compile(
    r"""(?P<comment>\#[^\n]*)"""
    r"""|(?P<text>[BbFfRrUu]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))"""
    r"""|(?P<name>[^\W\d]\w*)"""
    r"""|(?P<number>\d\w*)""",
    re.DOTALL,
)
_JS: Final = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<name>[A-Za-z_$][\w$]*)""",
    re.DOTALL,
)


@functools.cache
def check_name(name: str) -> tuple[str, ...]:
    """Return the terms to avoid that an identifier contains."""
    words = f"_{'_'.join(_WORD.findall(name))}_"
    if not _NAME.search(words) or name in INTERFACE_NAMES:
        return ()
    return tuple(
        term.avoid for term in TERMS if term.name and re.search(term.name, words, re.IGNORECASE)
    )


def check_prose(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield for each hit the line within the text, counted from 0, the term to avoid, and the
    matching text.
    """
    if not _PROSE.search(text):
        return
    for term in TERMS:
        if term.prose:
            for match in re.finditer(term.prose, text):
                yield text.count("\n", 0, match.start()), term.avoid, match[0]


def text_of(literal: str) -> str:
    """Return the value of a string literal, or the source of an f-string."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return literal
    return value if isinstance(value, str) else ""


def check_python(path: Path, source: str) -> Iterator[Hit]:
    """Check names, comments and docstrings. In the product, also check strings that are prose."""
    is_product = path.parts[0] in PRODUCT
    for match in _PYTHON.finditer(source):
        kind, literal = match.lastgroup, match[0]
        if kind == "name":
            if (str(path), literal) not in EXEMPT_NAMES:
                for term in check_name(literal):
                    yield Hit(str(path), line_of(match), term, literal)
            continue
        text = literal if kind == "comment" else ""
        if kind == "text":
            # A string that begins its line is treated as a docstring, although it can be another
            # string.
            begins_line = not source[
                source.rfind("\n", 0, match.start()) + 1 : match.start()
            ].strip()
            if is_product or begins_line:
                value = text_of(literal)
                text = value if begins_line or _IS_PROSE.search(value) else ""
        for offset, term, words in check_prose(text):
            yield Hit(str(path), line_of(match) + offset, term, words)


def line_of(match: re.Match[str]) -> int:
    return match.string.count("\n", 0, match.start()) + 1


def check_javascript(path: Path, source: str) -> Iterator[Hit]:
    """Check names, comments, and strings that are prose."""
    for match in _JS.finditer(source):
        if match["name"]:
            for term in check_name(match["name"]):
                yield Hit(str(path), line_of(match), term, match["name"])
        elif match["comment"] or _IS_PROSE.search(match["text"]):
            for offset, term, text in check_prose(match[0]):
                yield Hit(str(path), line_of(match) + offset, term, text)


def check_document(path: Path, source: str) -> Iterator[Hit]:
    """Check the text without code, and without the glossary's list of terms to avoid."""
    if path.suffix == ".html":
        source = re.sub(r"<[^>]*>", "", source)
    text = source.partition(AVOID_HEADING)[0] if path == GLOSSARY else source
    text = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    for offset, term, match in check_prose(text):
        yield Hit(str(path), offset + 1, term, match)


CHECKS: Final = {
    ".py": check_python,
    ".js": check_javascript,
    ".md": check_document,
    ".html": check_document,
}


def check(file: Path) -> Iterator[Hit]:
    path = file.relative_to(ROOT)
    for term in check_name("_".join(path.with_suffix("").parts)):
        yield Hit(str(path), 0, term, "file name")
    yield from CHECKS[file.suffix](path, file.read_text())


def files(area: str) -> list[Path]:
    paths = ROOT.glob("*") if area == "." else (ROOT / area).rglob("*")
    return sorted(
        file
        for file in paths
        if file.suffix in CHECKS
        and not any(file.relative_to(ROOT).is_relative_to(skipped) for skipped in SKIPPED)
    )


@pytest.mark.parametrize("area", [*PRODUCT, "tests", "docs", "."])
def test_terms_of_the_glossary_are_used(area: str) -> None:
    paths = files(area)
    assert paths
    hits = [hit for path in paths for hit in check(path)]
    if report := os.environ.get("LANGUAGE_REPORT"):
        with Path(report).open("a") as out:
            out.writelines(f"{hit}\n" for hit in hits)
    assert [str(hit) for hit in hits[:20]] == [], f"{len(hits)} hits"


def test_glossary_lists_each_term_to_avoid() -> None:
    table = (ROOT / GLOSSARY).read_text().partition(AVOID_HEADING)[2]
    rows = re.findall(r"^\| (.+) \| (.+) \|$", table, re.MULTILINE)
    assert rows == [("avoid", "use"), *((term.avoid, term.use) for term in TERMS)]


@pytest.mark.parametrize(
    "name",
    [
        "isTold",
        "TOLD_KEPT",
        "untold",
        "Found",
        "note_heard",
        "in_words",
        "Gap",
        "look_once",
        "tones",
    ],
)
def test_names_with_terms_to_avoid_are_refused(name: str) -> None:
    assert check_name(name) != ()


@pytest.mark.parametrize(
    "name",
    ["FileNotFoundError", "not_found", "TypeGuard", "strip", "look_up", "last_seen", "lastSeenAt"],
)
def test_names_without_terms_to_avoid_are_permitted(name: str) -> None:
    assert check_name(name) == ()


@pytest.mark.parametrize(
    "text",
    ["what is told of it", "another than before", "has fallen silent", "one look serves all"],
)
def test_sentences_with_terms_to_avoid_are_refused(text: str) -> None:
    assert list(check_prose(text)) != []


@pytest.mark.parametrize(
    "text",
    ["house rules", "a long-standing bug", "a look-up in the table", "copyright notice"],
)
def test_sentences_without_terms_to_avoid_are_permitted(text: str) -> None:
    assert list(check_prose(text)) == []
