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
    assert headline.verdict == "3 printers: 1 unreachable, 1 moved, 1 reachable."
    assert headline.tone == "bad"
    assert headline.outcome == "Complete: every source answered and nothing was cut."
    facts = {fact.label: fact.value for fact in headline.facts}
    assert facts["Place"] == "loc-0001"
    assert facts["Took"] == "3.36 s"
    assert facts["Scope"] == "this machine's local networks"
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
    assert network_headline(empty_report()).verdict == "Printers were not looked at."


def test_a_snapshot_in_one_glance() -> None:
    headline = application_headline(application_snapshot())
    assert headline.verdict == "57 facts read, 1 failed, 3 denied, 2 not for this machine."
    assert headline.tone == "warn"


def test_an_unknown_scope_is_shown_as_it_is() -> None:
    facts = {fact.label: fact.value for fact in network_headline(hostile_network()).facts}
    assert facts["Scope"] == "<script>alert(1)</script>"
