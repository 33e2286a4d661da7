"""Tests of the commands `sales` and `catalog` against a running service."""

import csv
import io
import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from rich.cells import cell_len

from controlplane.cli.main import build_parser, main
from controlplane.cli.screen.progress import Progress
from controlplane.figures.money import _DECIMALS, format_money
from tests.paths import ROOT
from tests.unit.controlplane.cli.merchant.conftest import SandboxMerchant

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
    pytest.mark.usefixtures("sandbox_environment"),
]
COUNT_SALES = "SELECT COUNT(*) FROM sales WHERE status = 'completed' AND currency = 'AED'"
"""SQL that counts the sales that the retail API lists."""


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def records(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads(run_command(capsys, *words, "--json"))
    return results


def test_all_sales_are_printed_as_json_and_csv(
    sandbox: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    sales = records(capsys, "sales")
    assert len(sales) == sandbox.query_number(COUNT_SALES)
    rows = list(csv.DictReader(io.StringIO(run_command(capsys, "sales", "--csv"))))
    assert [row["id"] for row in rows] == [sale["id"] for sale in sales]
    cents = sum(round(100 * float(row["total"])) for row in rows)
    assert cents == sandbox.query_number(COUNT_SALES.replace("COUNT(*)", "SUM(total)"))


def test_the_csv_of_sales_equals_the_download_of_the_console(
    sandbox: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    """The retail API lists only sales in AED. The download also has sales in other currencies."""
    reply = httpx2.post(
        f"{sandbox.service.url}/console/sales-table",
        json={"locationId": "loc-0001", "locationMode": "all", "period": "custom",
              "from": "2026-10-25", "to": "2026-11-25"},
        headers={"Authorization": f"Bearer {sandbox.keys['VENUE_CONTROL_API_KEY']}"},
        timeout=60,
    )  # fmt: skip
    console_rows = {
        row["id"]: comparable(row)
        for row in csv.DictReader(io.StringIO(reply.content.decode("utf-8-sig"), newline=""))
        if row["currency"] == "AED"
    }
    command_rows = csv.DictReader(io.StringIO(run_command(capsys, "sales", "--csv")))
    assert {row["id"]: comparable(row) for row in command_rows} == console_rows
    row = next(iter(console_rows.values()))
    assert row["location"]
    assert row["pointOfSale"].startswith("Till ")
    assert row["total"][-3] == "."
    assert any(row["employee"].isalpha() for row in console_rows.values())


def comparable(row: dict[str, str]) -> dict[str, Any]:
    """Return the row with a timestamp that does not depend on the time zone.

    The column ``positions`` is emptied, because it can differ: the retail API does not list the
    lines of a sale if one line has no unit or no tax.
    """
    timestamp = datetime.fromisoformat(row["initiatedAt"])
    return row | {"initiatedAt": timestamp.timestamp(), "positions": ""}


def test_figures_count_the_listed_sales_and_the_sales_in_other_currencies(
    sandbox: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    days = ("--from", "2026-10-25", "--to", "2026-11-25")
    summary = records(capsys, "figures", "--location", "loc-0001", "--all", *days)[0]
    figures = {
        currency["currency"]: currency["figures"] for currency in summary["current"]["currencies"]
    }
    counts = {currency: part["saleCount"] for currency, part in figures.items()}
    assert len(counts) > 1
    sales = records(capsys, "sales")
    assert len(sales) == counts.pop("AED")
    total = sum(sale["totals"]["total"]["value"] for sale in sales)
    assert total == figures["AED"]["saleCents"]
    completed = COUNT_SALES.replace(" AND currency = 'AED'", "")
    assert len(sales) + sum(counts.values()) == sandbox.query_number(completed)
    assert sum(counts.values()) > 0


def test_the_table_of_sales_has_the_newest_sales_and_their_sum(
    sandbox: SandboxMerchant, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sales", "--limit", "3"]) == 0
    out, err = capsys.readouterr()
    _, *rows = out.splitlines()
    newest = records(capsys, "sales", "--limit", "3")
    assert [row.split()[0] for row in rows] == [sale["number"] for sale in newest]
    total = sum(sale["totals"]["total"]["value"] for sale in newest)
    assert err == f"3 sales, {format_money(total, 'AED')}; --limit N shows more\n"
    assert newest[0]["initiated_at"] >= newest[1]["initiated_at"]
    assert sandbox.query_number(COUNT_SALES) > 3


def test_listing_many_sales_prints_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(Progress, "show", lambda _, text: messages.append(text))
    assert len(records(capsys, "sales", "--limit", "45")) == 45
    assert messages == ["20 sales fetched", "40 sales fetched"]


def test_sales_of_a_period_are_listed_in_the_given_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    days = ("--since", "2026-11-10", "--until", "2026-11-11", "--sort", "initiated_at_asc")
    times = [
        datetime.fromisoformat(record["initiated_at"]) for record in records(capsys, "sales", *days)
    ]
    assert times == sorted(times)
    assert {each.astimezone().day for each in times} == {10, 11}
    assert records(capsys, "sales", "--since", "2027-01-01") == []
    assert (
        run_command(capsys, "sales", "--since", "2027-01-01")
        == "No sale was completed in this period.\n"
    )


@pytest.mark.parametrize("name", ["goods", "categories", "uoms", "fees"])
def test_each_list_of_the_catalog_is_printed_as_table_and_csv(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    all_records = records(capsys, "catalog", name)
    assert all_records
    lines = run_command(capsys, "catalog", name).splitlines()[1:]
    assert [line.split()[0] for line in lines] == [record["id"] for record in all_records]
    rows = list(csv.DictReader(io.StringIO(run_command(capsys, "catalog", name, "--csv"))))
    assert {row["id"] for row in rows} == {record["id"] for record in all_records}


def test_a_good_is_selected_by_its_id_or_the_start_of_its_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = records(capsys, "catalog", "goods")[0]
    output = run_command(capsys, "catalog", "good", good["id"])
    assert good["name"] in output
    assert run_command(capsys, "catalog", "good", good["id"][:13]) == output
    assert json.loads(run_command(capsys, "catalog", "good", good["id"], "--json")) == good
    categories = {
        record["id"]: record["name"] for record in records(capsys, "catalog", "categories")
    }
    assert categories[good["category_id"]] in output
    price = good["variations"][0]["default_price"]["value"]
    assert format_money(price, "AED") in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("00000000-0000-4000-8000-000000000000", "there is no good 00000000-"),
        ("zz", "no good matches 'zz'"),
        ("", "no good matches ''"),
    ],
)
def test_the_error_for_an_unknown_good_names_the_command_that_lists_goods(
    text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "good", text]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert message in first
    assert second == "`venue-control catalog goods` lists the goods."


@pytest.mark.parametrize("width", [50, 80])
@pytest.mark.parametrize(
    "words",
    [
        ["sales", "--limit", "20"],
        ["catalog", "goods"],
        ["catalog", "categories"],
        ["catalog", "uoms"],
        ["catalog", "fees"],
        ["retail", "keys", "list"],
        [
            "figures",
            "--location",
            "loc-0001",
            "--all",
            "--from",
            "2026-11-01",
            "--to",
            "2026-11-20",
        ],
    ],
)
def test_every_list_fits_its_terminal(
    words: list[str],
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run_command(capsys, *words).splitlines()
    assert len(lines) > 1
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sales", "--base-url", "http://ops.example.com"], "refusing http"),
        (["sales", "--since", "2026-11-11", "--until", "2026-11-10"], "must not be before"),
        (
            ["catalog", "goods", "--retail-key-file", "/nonexistent"],
            "cannot read the retail API key",
        ),
        (["catalog", "fees", "--retail-key-file", __file__], "is not a retail API key"),
    ],
)
def test_a_usage_error_has_at_most_two_lines(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) <= 2


def test_the_error_for_a_missing_key_names_the_option_and_the_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VENUE_CONTROL_RETAIL_KEY")
    assert main(["sales"]) == 2
    assert "--retail-key-file FILE or $VENUE_CONTROL_RETAIL_KEY" in capsys.readouterr().err


def test_a_key_in_a_file_takes_precedence_over_the_environment(
    sandbox: SandboxMerchant,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "key"
    file.write_text(sandbox.keys["VENUE_CONTROL_RETAIL_KEY"] + "\n")
    monkeypatch.setenv("VENUE_CONTROL_RETAIL_KEY", "venue_test_wrong")
    assert main(["catalog", "uoms"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "venue-control: the service answered 401",
        "The API key is unknown or revoked: see `venue-control retail keys list`.",
    ]
    assert main(["catalog", "uoms", "--retail-key-file", str(file)]) == 0


@pytest.mark.parametrize("text", ["7", "2026-02-30", "1969-01-01", "yesterday", "2026-11-20T25:00"])
def test_an_invalid_time_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["sales", "--since", text])
    assert "must be" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("amount", "currency", "expected"),
    [
        (1250, "AED", "12.50 AED"),
        (-5, "EUR", "-0.05 EUR"),
        (1250, "JPY", "1250 JPY"),
        (1250, "BHD", "1.250 BHD"),
        (1250, "IQD", "1.250 IQD"),
        (0, "CLF", "0.0000 CLF"),
    ],
)
def test_money_has_the_decimals_of_its_currency(amount: int, currency: str, expected: str) -> None:
    assert format_money(amount, currency) == expected


def test_the_console_formats_money_with_the_same_decimals() -> None:
    script = (ROOT / "controlplane/console/amounts.js").read_text(encoding="utf-8")
    table = script.partition("DECIMALS = {")[2].partition("}")[0]
    assert {name: int(count) for name, count in re.findall(r"(\w{3}): (\d)", table)} == _DECIMALS
