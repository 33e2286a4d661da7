"""Which test covers each statement of the contract and of its retail part, as Markdown tables."""

from collections.abc import Iterator
from typing import Final

from tests.contract.service.coverage import agents, devices, facade, figures, retail, support
from tests.contract.service.coverage.forms import NEVER_SENT, TESTED_SEPARATELY
from tests.contract.service.coverage.reply_forms import OBJECTS, documented_forms
from tests.contract.service.coverage.rows import EVERY_FIELD, Row, Table

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
"""If a field has more forms than this, they are the words of an enum, and the table contains only
their number."""


def coverage_tables() -> Iterator[str]:
    yield "## Statements of the documents, and the tests that cover them\n"
    yield (
        "The statements come from the two documents of the contract: one about the retail API,\n"
        "one about all other operations. The word `ours` marks points that these documents leave\n"
        "open and this project decided.\n"
    )
    for table in TABLES:
        yield f"### {table.title}\n"
        yield "| statement | tests |\n|---|---|"
        yield from (_row(row) for row in table.rows)
        yield ""
    yield "### Fields of replies\n"
    yield (
        "The *forms* of a field are the cases that a reader of replies must handle: left\n"
        "out, null, true, false, each word of an enum, and each type of value. The test\n"
        f"{_link(EVERY_FIELD)}\n"
        "checks that replies contain each field in each form that the documents permit. A form\n"
        "with a link is covered by the linked test instead. A form that is struck out is\n"
        "permitted, but this service never sends it. Each reply that a test gets is validated\n"
        "with schemas that are transcribed from the documents alone:\n"
        "`tests/fakes/remote_control`, `tests/fakes/schemas/figures.py` and\n"
        "`tests/fakes/schemas/retail.py`. The contract does\n"
        "not show the replies of the support operations. They are validated with\n"
        "`tests/fakes/support/schema.py`.\n"
    )
    yield from _fields()


def _fields() -> Iterator[str]:
    yield "| object | field | forms |\n|---|---|---|"
    forms = documented_forms()
    for name in OBJECTS:
        for (owner, field), field_forms in forms.items():
            if owner == name or owner.startswith(f"{name}: "):
                output = ", ".join(_form(owner, field, form) for form in sorted(field_forms))
                if len(field_forms) > MANY:
                    output = f"each of {len(field_forms)} words"
                yield f"| {owner} | `{field}` | {output} |"
    yield ""


def _row(row: Row) -> str:
    return f"| {row.statement} | {', '.join(map(_link, row.tests)) or row.why} |"


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name.rpartition('::')[2]}]({_TO_ROOT}{file})"


def _form(owner: str, field: str, form: str) -> str:
    key = (owner, field, form)
    if key in TESTED_SEPARATELY:
        return f"{form} ({_link(TESTED_SEPARATELY[key])})"
    return f"~~{form}~~ ({NEVER_SENT[key]})" if key in NEVER_SENT else form
