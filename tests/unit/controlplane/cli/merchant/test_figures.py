"""Tests of the command `figures` and of the typed client against a running service."""

import json
import re
import sys
from collections.abc import Iterator
from datetime import date

import pytest

from agent.wire.codec import validate
from controlplane.analytics.messages import FiguresQuery, LocationQuery, NarrowedQuery
from controlplane.cli.figures.listings import notes_of, print_summary
from controlplane.cli.main import main
from controlplane.client.connection import connect
from controlplane.client.operations import OperationsClient
from controlplane.figures.money import format_amount
from controlplane.figures.records import Coverage, PulseCurrency, VenuePulse
from controlplane.figures.windows import day_of
from tests.unit.controlplane.cli.merchant.conftest import SandboxMerchant

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
    pytest.mark.usefixtures("sandbox_environment"),
]
DAYS = ("--from", "2026-11-11", "--to", "2026-11-20")
QUERY = {"locationId": "loc-0001", "period": "custom", "from": "2026-11-11", "to": "2026-11-20"}
SUM_OF_LOCATIONS = """SELECT SUM({}) FROM sales s JOIN locations l ON l.position = s.location
    WHERE s.status = 'completed' AND s.currency = 'AED' AND l.id IN ({})
    AND s.local_hour / 24 BETWEEN {} AND {}"""
"""SQL with placeholders for a column, a list of location ids, the first day and the last day."""


@pytest.fixture
def client(sandbox: SandboxMerchant) -> Iterator[OperationsClient]:
    with connect(sandbox.service.url, None, sandbox.keys) as opened:
        yield opened


def day(text: str) -> int:
    return day_of(date.fromisoformat(text))


def row(out: str, name: str) -> list[str]:
    """Return the words after the name in the only line that begins with this name."""
    (result,) = [line for line in out.splitlines() if line.startswith(f"{name}  ")]
    return result.removeprefix(name).split()


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["figures", *words]) == 0
    return capsys.readouterr().out


def test_figures_equal_the_sales(
    sandbox: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run_command(capsys, "--location", "loc-0001", *DAYS).partition("\nEUR")[0]
    for name, column in (("gross", "s.gross"), ("discount", "s.gross - s.total")):
        now, before = (
            sandbox.query_number(
                SUM_OF_LOCATIONS.format(column, "'loc-0001'", day(first), day(last))
            )
            for first, last in (("2026-11-11", "2026-11-20"), ("2026-11-01", "2026-11-10"))
        )
        assert row(out, name)[:2] == [format_amount(cents, "AED") for cents in (now, before)]
    assert out.startswith("loc-0001, 2026-11-11 to 2026-11-20; before: 2026-11-01 to 2026-11-10")


def test_a_narrow_terminal_omits_the_change_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width, headings in (("50", ["now", "before", "change"]), ("40", ["now", "before"])):
        monkeypatch.setenv("COLUMNS", width)
        out = run_command(capsys, "--location", "loc-0001", *DAYS)
        assert row(out, "AED") == headings
        assert max(len(line.rstrip()) for line in out.splitlines()) <= int(width)


def test_figures_of_several_and_of_all_locations_are_printed(
    sandbox: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    both = run_command(capsys, "--location", "loc-0001", "--location", "loc-0002", *DAYS)
    assert [line.split(",")[0] for line in both.splitlines() if "before: " in line] == [
        "loc-0001",
        "loc-0002",
    ]
    every = run_command(capsys, "--location", "loc-0002", "--all", *DAYS).partition("\nEUR")[0]
    location_list = "'loc-0001', 'loc-0002', 'loc-0003', 'loc-0004'"
    gross = sandbox.query_number(
        SUM_OF_LOCATIONS.format("s.gross", location_list, day("2026-11-11"), day("2026-11-20"))
    )
    assert row(every, "gross")[0] == format_amount(gross, "AED")
    assert "4 locations" in every


def pulse(location_id: str, today: int, yesterday: int) -> VenuePulse:
    currency = PulseCurrency(
        currency="AED", today_cents=today, yesterday_cents=yesterday, complete=True,
        comparison_complete=True, delta_percent=None, points=(), peak_points=(),
    )  # fmt: skip
    return VenuePulse(
        location_id=location_id, activity_complete=True, currencies=(currency,), activity=()
    )


def test_only_the_row_net_compares_today_with_yesterday_until_the_same_time(
    client: OperationsClient, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = client.financial_summary(validate(QUERY, FiguresQuery))
    print_summary(summary, [pulse("loc-0001", 15_000, 10_000)], is_first=True)
    out = capsys.readouterr().out.partition("\nEUR")[0]
    ((until, cells),) = re.findall(r"^net (until \d\d:\d\d) +(.+)$", out, re.MULTILINE)
    assert cells.split() == ["150.00", "100.00", "+50.0", "%"]
    assert row(out, "AED") == ["today", "yesterday", "change"]
    assert len(row(out, "gross")) == 2
    assert f"Yesterday: net {until}; all other figures are for the whole day." in out


def test_the_net_of_all_locations_until_the_same_time_is_the_sum_of_their_pulses(
    client: OperationsClient, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = client.financial_summary(validate(QUERY | {"locationMode": "all"}, FiguresQuery))
    pulses = [pulse("loc-0001", 15_000, 10_000), pulse("loc-0002", 500, 250)]
    print_summary(summary, pulses, is_first=True)
    out = capsys.readouterr().out.partition("\nEUR")[0]
    assert row(out, "net until the same time")[:2] == ["155.00", "102.50"]


def test_without_pulses_all_figures_of_yesterday_are_for_the_whole_day(
    client: OperationsClient, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = client.financial_summary(validate(QUERY, FiguresQuery))
    print_summary(summary, [], is_first=True)
    out = capsys.readouterr().out
    assert "%" not in out
    assert "Yesterday: all figures are for the whole day." in out


def test_the_default_period_is_today_and_its_net_comes_from_the_pulse(
    client: OperationsClient, capsys: pytest.CaptureFixture[str]
) -> None:
    (expected,) = client.venue_financial_pulse(LocationQuery(location_id="loc-0001")).venues
    net = {currency.currency: currency.today_cents for currency in expected.currencies}["AED"]
    out = run_command(capsys, "--location", "loc-0001")
    (amount,) = re.findall(r"^net until \d\d:\d\d +(\S+)", out, re.MULTILINE)
    assert amount == format_amount(net, "AED")


def test_json_output_is_the_financial_summary(
    client: OperationsClient, capsys: pytest.CaptureFixture[str]
) -> None:
    (summary,) = json.loads(run_command(capsys, "--location", "loc-0001", *DAYS, "--json"))
    expected = client.financial_summary(validate(QUERY, FiguresQuery))
    assert summary["current"]["currencies"][0]["figures"]["grossCents"] == (
        expected.current.currencies[0].figures.gross_cents
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no device is enrolled at a location with sales"),
        (["--location", "loc-0001", "--from", "2026-11-01"], "--from and --to require each other"),
        (
            ["--location", "loc-0001", "--period", "today", *DAYS],
            "use either --period, or --from and --to",
        ),
        (
            ["--location", "loc-0001", "--location", "loc-0002", "--all"],
            "--all shows all locations",
        ),
        (["--location", ""], "the query is not valid: locationId"),
        (
            ["--location", "loc-0001", "--from", "2026-11-20", "--to", "2026-11-19"],
            "--to must not be before --from",
        ),
    ],
)
def test_a_usage_error_has_at_most_two_lines(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figures", *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) <= 2


def test_the_service_refuses_an_unknown_location(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["figures", "--location", "loc-none"]) == 1
    assert "404 location_not_found" in capsys.readouterr().err


def test_every_operation_has_a_typed_call(client: OperationsClient) -> None:
    request, narrowed = validate(QUERY, FiguresQuery), validate(QUERY, NarrowedQuery)
    query = LocationQuery(location_id="loc-0001")
    dashboard = client.dashboard(request)
    figures = dashboard.financial.current.currencies[0]
    assert figures.figures.sale_count > 0
    assert client.financial_summary(request).current.currencies[0].figures == figures.figures
    assert client.chart(request).currencies == dashboard.buckets
    assert client.sales(narrowed).currencies[0].figures == figures.figures
    assert client.items(narrowed).currencies == dashboard.financial_items
    assert client.reconciliation(narrowed).currencies[0].methods == figures.methods
    assert client.trend(narrowed).currencies == dashboard.financial_trading
    assert client.venues(narrowed).currencies[0].locations == figures.locations
    (pulse,) = client.venue_financial_pulse(query).venues
    assert client.venue_pulse(query).venues[0].activity == pulse.activity


def test_notes_describe_incomplete_sales_and_refunds() -> None:
    complete = Coverage(
        **dict.fromkeys(Coverage.model_fields, 0)
        | dict.fromkeys(("sales_complete", "refunds_complete", "vat_complete"), True)
    )
    assert list(notes_of(complete, "AED")) == []
    incomplete = complete.model_copy(
        update={
            "missing_sale_snapshot_count": 2,
            "missing_sale_snapshot_cents": 1050,
            "unresolved_imported_order_count": 1,
            "unresolved_imported_order_cents": 7,
            "sale_unknown_tax_line_count": 3,
            "undated_refund_payment_count": 1,
            "undated_refund_cents": 99,
            "refund_unknown_components_count": 2,
            "refund_unknown_tax_count": 1,
        }
    )
    assert list(notes_of(incomplete, "AED")) == [
        "2 sales of 10.50 AED without lines: included, but not in sums by article.",
        "1 unresolved order of 0.07 AED: not included.",
        "3 sale lines with an unknown tax.",
        "1 refund of 0.99 AED without a date: not subtracted.",
        "2 refunds of which only the amount is known: counted as goods.",
        "1 refund with an unknown tax.",
    ]
