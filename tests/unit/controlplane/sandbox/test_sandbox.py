"""Tests of sandboxes, which are generated merchants.

The same seed generates the same merchant. A merchant of an awkward plan has every unusual case, for
example a refund without a date.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select, text
from sqlalchemy.orm import Session

from controlplane.cli.main import main
from controlplane.merchant.rebuild import rebuild
from controlplane.sandbox.catalog import ROWS_MAX, Catalog, load_catalog, make_catalog
from controlplane.sandbox.contents import REFERENCES, delete_merchant
from controlplane.sandbox.loading import (
    NoSandboxError,
    OccupiedError,
    continue_sales,
    last_sale_at,
    load,
    stored_generator,
    stored_plan,
)
from controlplane.sandbox.ndjson import FormatError, export, load_lines
from controlplane.sandbox.plan import ORGANIZATION, Plan
from controlplane.storage.database import Database
from controlplane.storage.merchant.rollup_tables import ROLLUPS
from controlplane.storage.merchant.sales_tables import Sale

NOW = datetime(2026, 11, 20, 12, 34, 56, tzinfo=UTC)
PLAN = Plan(locations=9, days=45, sales_per_day=14, goods=40, until=NOW.date(), is_awkward=True)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(str(tmp_path / "service.db"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def awkward_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = Database(str(tmp_path_factory.mktemp("sandbox") / "service.db"))
    opened.write(lambda session: load(session, PLAN, NOW))
    yield opened
    opened.close()


def export_lines(database: Database) -> list[str]:
    return database.read(lambda session: list(export(session, ORGANIZATION)))


def count(database: Database, query: str) -> int:
    return database.read(lambda session: int(session.execute(text(query)).scalar_one()))


@pytest.mark.parametrize(
    "condition",
    [
        "sale_lines WHERE discount > 0",
        "sales WHERE discount > 0",
        "sales WHERE tip > 0",
        "sales WHERE municipality_fee > 0",
        "sales WHERE payment_type = 'mixed'",
        "sales WHERE payment_type = 'card' AND payment_method IS NULL",
        "sales WHERE payment_type = 'other' AND payment_method IS NULL",
        "sales WHERE NOT has_lines AND status = 'completed'",
        "sales WHERE status = 'unknown'",
        "sales WHERE unknown_tax_lines > 0",
        "sales WHERE employee IS NULL",
        "sales WHERE comment IS NOT NULL",
        "sales WHERE external_data IS NOT NULL",
        "sales JOIN locations l ON l.position = location WHERE sales.currency <> l.currency",
        "sale_lines JOIN line_snapshots n ON n.position = snapshot WHERE n.exponent = 3",
        "sale_lines JOIN line_snapshots n ON n.position = snapshot WHERE source <> 'catalog'",
        "refunds WHERE refunded_at IS NULL",
        "refunds WHERE NOT has_components",
        "refunds WHERE has_components AND tax IS NULL",
        "refunds WHERE fee > 0",
        "refunds JOIN sales s ON s.position = sale WHERE goods < s.total",
        "refunds JOIN sales s ON s.position = sale WHERE goods = s.total",
        "locations WHERE zone IS NULL",
        "locations WHERE zone = 'Mars/Olympus_Mons'",
        "locations WHERE currency = 'EUR'",
        "goods WHERE status = 'inactive'",
        "goods WHERE category_id IS NULL",
        "good_variations WHERE name IS NOT NULL",
        # A day of 25 hours: Berlin, 25 October 2026.
        "sales WHERE local_hour / 24 = 20751 AND location = 2",
    ],
)
def test_an_awkward_load_contains_every_unusual_case(
    awkward_sandbox: Database, condition: str
) -> None:
    assert count(awkward_sandbox, f"SELECT COUNT(*) FROM {condition}") > 0


@pytest.fixture(scope="module")
def usual_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A sandbox whose plan is not awkward."""
    opened = Database(str(tmp_path_factory.mktemp("usual") / "service.db"))
    plan = Plan(days=45, sales_per_day=14, goods=40, until=NOW.date())
    opened.write(lambda session: load(session, plan, NOW))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "condition",
    [
        "locations WHERE zone IS NULL OR zone <> 'Asia/Dubai' OR currency <> 'AED'",
        "sales WHERE NOT has_lines OR status <> 'completed' OR unknown_tax_lines > 0",
        "sales WHERE employee IS NULL OR currency <> 'AED'",
        "sale_payments WHERE method IS NULL",
        "line_snapshots WHERE uom_id IS NULL OR fee_item_id IS NULL",
        "refunds WHERE refunded_at IS NULL OR NOT has_components OR tax IS NULL",
    ],
)
def test_a_usual_load_contains_no_unknown_data(usual_sandbox: Database, condition: str) -> None:
    assert count(usual_sandbox, f"SELECT COUNT(*) FROM {condition}") == 0
    assert count(usual_sandbox, "SELECT COUNT(*) FROM refunds WHERE goods > 0") > 0


def test_a_plan_that_an_earlier_version_stored_is_awkward() -> None:
    stored = PLAN.to_json()
    del stored["is_awkward"]
    assert Plan.from_json(stored) == PLAN


def test_the_payments_of_every_sale_add_up_to_its_total(awkward_sandbox: Database) -> None:
    query = (
        "SELECT COUNT(*) FROM sales s WHERE s.total + s.municipality_fee + s.tip <>"
        " (SELECT SUM(p.amount) FROM sale_payments p WHERE p.sale = s.position)"
    )
    assert count(awkward_sandbox, query) == 0
    assert (
        awkward_sandbox.read(lambda s: s.execute(select(func.count(Sale.position))).scalar_one())
        > 4000
    )


def test_rollups_of_a_load_equal_the_sums_of_its_rows(awkward_sandbox: Database) -> None:
    assert set(awkward_sandbox.write(rebuild).values()) == {0}


@pytest.mark.medium
def test_the_same_seed_makes_the_same_merchant(
    awkward_sandbox: Database, database: Database
) -> None:
    database.write(lambda session: load(session, PLAN, NOW))
    assert export_lines(database) == export_lines(awkward_sandbox)


def test_a_different_seed_makes_a_different_merchant(database: Database) -> None:
    small = Plan(seed=2, days=3, goods=5, until=NOW.date())
    database.write(lambda session: load(session, small, NOW))
    other = Database(str(Path(database._engine.url.database or "").with_name("other.db")))
    other.write(lambda session: load(session, Plan(days=3, goods=5, until=NOW.date()), NOW))
    assert export_lines(database)[-1] != export_lines(other)[-1]
    other.close()


def test_a_large_catalog_is_written_and_read_in_batches(database: Database) -> None:
    """The session never contains all goods at once, so memory does not grow with the catalog."""
    plan = Plan(locations=1, days=1, sales_per_day=1, goods=900, until=NOW.date())
    sizes: list[int] = []

    def record_size(session: Session, *_: Any) -> None:
        sizes.append(len(session.new) + len(session.identity_map))

    def write(session: Session) -> Catalog:
        event.listen(session, "before_flush", record_size)
        return make_catalog(session, plan)

    catalog = database.write(write)
    assert count(database, "SELECT COUNT(*) FROM goods") == plan.goods
    assert len(sizes) > 3
    assert max(sizes) < ROWS_MAX + 20
    assert len(catalog.offers) == count(database, "SELECT COUNT(*) FROM good_variations")
    assert database.read(lambda session: load_catalog(session, plan)) == catalog
    unknown = replace(plan, seed=9)
    with pytest.raises(KeyError):  # the database does not contain the articles of this plan
        database.read(lambda session: load_catalog(session, unknown))


def test_a_second_load_is_refused(awkward_sandbox: Database) -> None:
    with pytest.raises(OccupiedError):
        awkward_sandbox.write(lambda session: load(session, PLAN, NOW))


@pytest.mark.medium
def test_a_load_with_continued_sales_equals_a_longer_load(tmp_path: Path) -> None:
    """A load and three later steps that add sales give the same merchant as one longer load."""
    now = NOW - timedelta(days=2)
    plan = Plan(locations=4, days=20, sales_per_day=9, goods=9, until=NOW.date(), is_awkward=True)
    whole, parts = (Database(str(tmp_path / name)) for name in ("whole.db", "parts.db"))
    whole.write(lambda session: load(session, plan, NOW))
    parts.write(lambda session: load(session, plan, now))
    generator = parts.read(
        lambda session: stored_generator(session, stored_plan(session, ORGANIZATION))
    )
    assert parts.read(lambda session: last_sale_at(session, ORGANIZATION)) <= now
    added_counts = [0, 0]
    for until in (now + timedelta(hours=9), now + timedelta(hours=30), NOW):
        result = parts.write(lambda s, a=now, b=until: continue_sales(s, *generator, a, b))  # type: ignore[misc]
        added_counts = [total + added for total, added in zip(added_counts, result, strict=True)]
        now = until
    assert min(added_counts) > 0
    assert generator[0].plan == plan
    assert sorted(map(row_without_positions, export_lines(parts))) == sorted(
        map(row_without_positions, export_lines(whole))
    )
    assert set(parts.write(rebuild).values()) == {0}
    whole.close()
    parts.close()


def row_without_positions(line: str) -> str:
    """Return a row without the fields that depend on the order and time of writing."""
    row = json.loads(line)
    for name in ("position", "sale", "refund", "updated_at"):
        row.pop(name, None)
    return json.dumps(row, sort_keys=True)


@pytest.mark.medium
def test_an_import_equals_the_exported_rows(awkward_sandbox: Database, database: Database) -> None:
    other_plan = Plan(seed=5, days=2, goods=3, until=NOW.date(), organization_id="org-0005")
    database.write(lambda session: load(session, other_plan, NOW))
    exported = export_lines(awkward_sandbox)
    counts = database.write(lambda session: load_lines(session, exported))
    assert sum(counts.values()) == len(exported) - 1
    assert sorted(map(row_without_references, export_lines(database))) == sorted(
        map(row_without_references, exported)
    )
    assert set(database.write(rebuild).values()) == {0}
    for rollup in ROLLUPS:
        positions = "SELECT position FROM locations WHERE organization_id = 'org-0001'"
        query = f"SELECT COUNT(*) FROM {rollup.__tablename__} WHERE location IN ({positions})"
        assert count(database, query) == count(awkward_sandbox, query)
    with pytest.raises(OccupiedError):
        database.write(lambda session: load_lines(session, exported))


def row_without_references(line: str) -> str:
    row = json.loads(line)
    for name in ("position", *REFERENCES):
        row.pop(name, None)
    return json.dumps(row, sort_keys=True)


def test_clearing_an_organization_keeps_the_rows_of_other_organizations(database: Database) -> None:
    for organization in ("org-0001", "org-0002"):
        plan = Plan(seed=3, days=2, goods=4, until=NOW.date(), organization_id=organization)
        database.write(lambda session, plan=plan: load(session, plan, NOW))  # type: ignore[misc]
    other_rows = database.read(lambda session: list(export(session, "org-0002")))
    database.write(lambda session: delete_merchant(session, "org-0001"))
    assert len(export_lines(database)) == 1
    assert database.read(lambda session: list(export(session, "org-0002"))) == other_rows
    assert set(database.write(rebuild).values()) == {0}


HEAD = '{"format": "venue-sandbox", "version": 1, "organization": "org-0001"}'
UNIT = {
    "table": "units_of_measure", "id": "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10",
    "organization_id": "org-0001", "name": "Piece", "symbol": "pcs", "exponent": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("listing", "error"),
    [
        ([], "contains no organization"),
        ([HEAD], "contains no organization"),
        (["{}"], "line 1 is not the head"),
        ([HEAD.replace("1,", "2,")], "line 1 is not the head"),
        ([HEAD, "[]"], "line 2 is not an object"),
        ([HEAD, "{"], "line 2 is not JSON"),
        ([HEAD, '{"table": "api_keys"}'], "line 2 names an unknown table"),
        ([HEAD, json.dumps(UNIT | {"exponent": "0"})], "line 2: exponent"),
        ([HEAD, json.dumps(UNIT | {"more": 1})], "line 2: more"),
        ([HEAD, json.dumps({**UNIT, "id": "x"})], "line 2: id"),
        ([HEAD, json.dumps(UNIT | {"organization_id": "org-2"})], "another organization"),
    ],
)
def test_an_invalid_export_is_refused(database: Database, listing: list[str], error: str) -> None:
    with pytest.raises(FormatError, match=error):
        database.write(lambda session: load_lines(session, listing))
    assert database.read(lambda session: list(export(session, "org-0001")))[1:] == []


def test_an_organization_that_is_not_a_sandbox_is_refused(database: Database) -> None:
    with pytest.raises(NoSandboxError):
        database.read(lambda session: stored_plan(session, "org-0001"))


# ---------------------------------------------------------------------------- the command line


def test_the_command_line_loads_continues_and_exports(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", str(tmp_path / "service.db"))
    small = ("--days", "4", "--goods", "6", "--sales-per-day", "20")
    assert main(["sandbox", "load", *small, "--until", "2026-11-20"]) == 0
    out, err = capsys.readouterr()
    first, second = out.splitlines()
    assert first.startswith("export VENUE_CONTROL_API_KEY=vck_")
    assert second.startswith("export VENUE_CONTROL_RETAIL_KEY=venue_test_")
    assert "at 3 locations" in err
    assert "Next: venue-control serve\n" in err
    assert main(["sandbox", "load", *small]) == 2
    assert "--replace" in capsys.readouterr().err
    assert main(["sandbox", "load", *small, "--replace"]) == 0
    assert main(["sandbox", "run", "--once"]) == 0
    capsys.readouterr()
    assert main(["sandbox", "rebuild"]) == 0
    assert "hour_rollups: 0 wrong" in capsys.readouterr().out
    file = str(tmp_path / "merchant.ndjson")
    assert main(["sandbox", "export", file]) == 0
    other = str(tmp_path / "other.db")
    assert main(["sandbox", "import", file, "--database", other]) == 0
    assert main(["sandbox", "export", "--database", other]) == 0
    assert capsys.readouterr().out == Path(file).read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["export", "--organization", "org-none"],
        ["import", "no-such-file"],
        ["load", "--days", "0"],
        ["load", "--until", "20-11-2026"],
    ],
)
def test_command_line_errors_print_no_traceback(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    file = str(tmp_path / "service.db")
    Database(file).close()  # creates the file
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", file)
    try:
        code = main(["sandbox", *arguments])
    except SystemExit as exit_error:
        code = int(exit_error.code or 0)
    assert code in {1, 2}
    assert "Traceback" not in capsys.readouterr().err
