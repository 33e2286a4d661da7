from agent.presentation.headline import headline_of
from tests.fixtures.payloads import (
    application_snapshot,
    bare_report,
    empty_report,
    hostile_network,
    large_venue,
    small_venue,
)


def test_the_headline_of_a_network_report_contains_verdict_outcome_and_facts() -> None:
    headline = headline_of(small_venue())
    assert headline.verdict == (
        "Kitchen printer has moved from 192.168.1.50:9100 to 192.168.1.61:9100. And 1 more finding."
    )
    assert headline.severity == "bad"
    assert headline.outcome == "Complete: every source succeeded and nothing was cut."
    facts = {row.label: row.value for row in headline.rows}
    assert facts["Location"] == "loc-0001"
    assert facts["Duration"] == "3.36 s"
    assert facts["Scope"] == "this machine's local networks"
    assert facts["Printers"] == "3 printers: 1 unreachable, 1 moved, 1 reachable"
    assert facts["Contents"] == "12 hosts, 9 endpoints"


def test_the_title_begins_with_the_name_of_the_machine() -> None:
    payload = small_venue()
    identity = payload.identity.model_copy(update={"install_id": "till-3"})
    headline = headline_of(payload.model_copy(update={"identity": identity}))
    assert headline.title == "till-3: network report"
    assert "Machine" not in {row.label for row in headline.rows}


def test_a_generated_install_id_is_not_used_as_a_title() -> None:
    headline = headline_of(application_snapshot())
    assert headline.title == "Application snapshot"
    assert "Machine" in {row.label for row in headline.rows}


def test_discovered_printers_are_named_if_none_is_configured() -> None:
    payload = small_venue().model_copy(update={"printers": ()})
    assert headline_of(payload).verdict == (
        "No printer is configured on this machine; 2 discovered on the network: EPSON TM-T20III at "
        "192.168.1.52, EPSON TM-m30II at .61."
    )
    nothing = payload.model_copy(update={"network_map": None, "endpoints": ()})
    assert headline_of(nothing).verdict == "No printer is configured on this machine."


def test_failed_steps_are_counted_in_the_outcome() -> None:
    headline = headline_of(bare_report())
    assert headline.outcome.endswith("1 step failed, see below.")
    assert headline.outcome_severity == "bad"
    assert "Contents" not in {row.label for row in headline.rows}


def test_omitted_endpoints_are_counted_in_the_headline() -> None:
    facts = {row.label: row.value for row in headline_of(large_venue(60)).rows}
    payload = large_venue(60)  # its endpoints_omitted is 37
    assert facts["Contents"] == f"60 hosts, {len(payload.endpoints) + 37} endpoints"


def test_the_outcome_of_a_limited_report_is_a_warning() -> None:
    assert headline_of(empty_report()).outcome_severity == "warn"
    assert headline_of(empty_report()).verdict == "The machine is not connected to a network."
    facts = {row.label: row.value for row in headline_of(empty_report()).rows}
    assert facts["Printers"] == "Printers were not checked"


def test_the_headline_of_a_snapshot_contains_the_worst_finding_and_counts_facts() -> None:
    headline = headline_of(application_snapshot())
    assert headline.verdict == (
        "The print queue kitchen is stuck: 14 jobs wait, the oldest for 45 min;"
        " the printer reports: out of paper. And 3 more findings."
    )
    assert headline.severity == "bad"
    facts = {row.label: row.value for row in headline.rows}
    assert facts["Facts"] == "66 read, 1 failed, 3 denied, 2 do not apply"


def test_a_printer_in_an_unknown_state_is_reported_as_a_note() -> None:
    payload = small_venue()
    assert payload.printers
    unknown = payload.printers[0].model_copy(update={"status": "unknown"})
    headline = headline_of(payload.model_copy(update={"printers": (unknown,)}))
    assert [finding.label for finding in headline.findings] == ["note"]
    assert headline.verdict == "The printer is in an unknown state."


def test_the_headline_of_a_snapshot_without_findings_reports_no_problem() -> None:
    payload = application_snapshot()
    few = payload.snapshot.model_copy(update={"fields": payload.snapshot.fields[:3]})
    headline = headline_of(payload.model_copy(update={"snapshot": few}))
    assert (headline.verdict, headline.severity, headline.findings) == (
        "No problem was found.",
        "good",
        (),
    )
    none = few.model_copy(update={"fields": (), "interfaces": (), "peripherals": ()})
    nothing = payload.model_copy(update={"snapshot": none, "browser_fields": ()})
    assert headline_of(nothing).verdict == "Nothing could be read."


def test_an_unknown_scope_is_displayed_unchanged() -> None:
    facts = {row.label: row.value for row in headline_of(hostile_network()).rows}
    assert facts["Scope"] == "<script>alert(1)</script>"
