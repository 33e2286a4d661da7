"""Which test covers each statement of the two documents, as tables in Markdown."""

from collections.abc import Iterator
from typing import Final

from tests.contract.service.coverage import agents, devices, facade, figures, retail, support
from tests.contract.service.coverage.rows import EVERY_FIELD, Row, Table
from tests.contract.service.coverage.seen import OBJECTS, documented
from tests.contract.service.coverage.ways import NEVER, SEEN_ELSEWHERE

TABLES: Final[tuple[Table, ...]] = (
    *facade.FACADE,
    *devices.DEVICES,
    *agents.AGENTS,
    *support.SUPPORT,
    *figures.FIGURES,
    *retail.RETAIL,
)
_TO_ROOT: Final = "../"
MANY: Final = 20
"""Longer enums are counted instead of listed."""


def coverage_tables() -> Iterator[str]:
    yield "## What the documents say, and the test that saw it\n"
    for table in TABLES:
        yield f"### {table.title}\n"
        yield "| the document says | seen by |\n|---|---|"
        yield from (_row(each) for each in table.rows)
        yield ""
    yield "### Fields of replies\n"
    yield (
        "Each field was seen on the wire in each way that the documents permit, by\n"
        f"{_link(EVERY_FIELD)}, but for ways\n"
        "that name another test, and those struck out, which this service does not use. Every\n"
        "reply that a test gets is held to schemas transcribed from the documents alone:\n"
        "`tests/fakes/remote_control`, `tests/fakes/schemas/figures.py`,\n"
        "`tests/fakes/schemas/retail.py`. Those of support, which the contract does not show, are\n"
        "held to `tests/fakes/support/schema.py`.\n"
    )
    yield from _fields()


def _fields() -> Iterator[str]:
    yield "| object | field | stands as |\n|---|---|---|"
    ways = documented()
    for name in OBJECTS:
        for (owner, field), result in ways.items():
            if owner == name or owner.startswith(f"{name}: "):
                output = ", ".join(_way(owner, field, way) for way in sorted(result))
                if len(result) > MANY:
                    output = f"each of {len(result)} words"
                yield f"| {owner} | `{field}` | {output} |"
    yield ""


def _row(row: Row) -> str:
    return f"| {row.statement} | {', '.join(map(_link, row.tests)) or row.why} |"


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name.rpartition('::')[2]}]({_TO_ROOT}{file})"


def _way(owner: str, field: str, way: str) -> str:
    key = (owner, field, way)
    if key in SEEN_ELSEWHERE:
        return f"{way} ({_link(SEEN_ELSEWHERE[key])})"
    return f"~~{way}~~ ({NEVER[key]})" if key in NEVER else way
