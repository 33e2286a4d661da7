from agent.presentation.headline import application_headline, network_headline
from tests.fixtures.payloads import (
    application_snapshot,
    bare_report,
    empty_report,
    hostile_network,
    large_venue,
    small_venue,
)


def test_a_network_report_in_one_glance() -> None:
    headline = network_headline(small_venue())
    assert headline.verdict == (
        "Kitchen printer has moved from 192.168.1.50:9100 to 192.168.1.61:9100. And 1 more finding."
    )
    assert headline.tone == "bad"
    assert headline.outcome == "Complete: every source answered and nothing was cut."
    facts = {fact.label: fact.value for fact in headline.facts}
    assert facts["Place"] == "loc-0001"
    assert facts["Took"] == "3.36 s"
    assert facts["Scope"] == "this machine's local networks"
    assert facts["Printers"] == "3 printers: 1 unreachable, 1 moved, 1 reachable"
    assert facts["Found"] == "12 hosts, 9 endpoints"


def test_the_machine_is_the_title() -> None:
    payload = small_venue()
    named = payload.identity.model_copy(update={"install_id": "till-3"})
    headline = network_headline(payload.model_copy(update={"identity": named}))
    assert headline.title == "till-3: network report"
    assert "Machine" not in {fact.label for fact in headline.facts}


def test_a_number_is_no_title() -> None:
    headline = application_headline(application_snapshot())
    assert headline.title == "Application snapshot"
    assert "Machine" in {fact.label for fact in headline.facts}


def test_printers_that_are_seen_are_named_where_none_is_set_up() -> None:
    payload = small_venue().model_copy(update={"printers": ()})
    assert network_headline(payload).verdict == (
        "No printer is set up on this machine; 2 seen on the network: EPSON TM-T20III at "
        "192.168.1.52, EPSON TM-m30II at .61."
    )
    nothing = payload.model_copy(update={"network_map": None, "endpoints": ()})
    assert network_headline(nothing).verdict == "No printer is set up on this machine."


def test_failed_steps_are_counted_in_the_outcome() -> None:
    headline = network_headline(bare_report())
    assert headline.outcome.endswith("1 step failed, see below.")
    assert headline.outcome_tone == "bad"
    assert "Found" not in {fact.label for fact in headline.facts}


def test_omitted_endpoints_were_found_too() -> None:
    facts = {fact.label: fact.value for fact in network_headline(large_venue(60)).facts}
    payload = large_venue(60)
    assert facts["Found"] == f"60 hosts, {len(payload.endpoints) + 37} endpoints"


def test_a_limited_report_is_no_failure() -> None:
    assert network_headline(empty_report()).outcome_tone == "warn"
    assert network_headline(empty_report()).verdict == "The machine is on no network."
    facts = {fact.label: fact.value for fact in network_headline(empty_report()).facts}
    assert facts["Printers"] == "Printers were not looked at"


def test_a_snapshot_in_one_glance() -> None:
    headline = application_headline(application_snapshot())
    assert headline.verdict == (
        "The print queue kitchen is stuck: 14 jobs wait, the oldest for 45 min;"
        " the printer: out of paper. And 3 more findings."
    )
    assert headline.tone == "bad"
    facts = {fact.label: fact.value for fact in headline.facts}
    assert facts["Facts"] == "66 read, 1 failed, 3 denied, 2 not for this machine"


def test_what_is_only_to_be_known_is_no_verdict_on_printers() -> None:
    payload = small_venue()
    assert payload.printers
    unknown = payload.printers[0].model_copy(update={"status": "unknown"})
    headline = network_headline(payload.model_copy(update={"printers": (unknown,)}))
    assert [finding.severity for finding in headline.findings] == ["note"]
    assert headline.verdict == "The printer is in an unknown state."


def test_a_snapshot_without_findings_says_so() -> None:
    payload = application_snapshot()
    few = payload.snapshot.model_copy(update={"fields": payload.snapshot.fields[:3]})
    headline = application_headline(payload.model_copy(update={"snapshot": few}))
    assert (headline.verdict, headline.tone, headline.findings) == (
        "No problem was found.",
        "good",
        (),
    )
    none = few.model_copy(update={"fields": (), "interfaces": (), "peripherals": ()})
    nothing = payload.model_copy(update={"snapshot": none, "browser_fields": ()})
    assert application_headline(nothing).verdict == "Nothing could be read."


def test_an_unknown_scope_is_shown_as_it_is() -> None:
    facts = {fact.label: fact.value for fact in network_headline(hostile_network()).facts}
    assert facts["Scope"] == "<script>alert(1)</script>"
