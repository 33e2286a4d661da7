from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.rules.reports.application import application_report, completeness
from agent.wire.codec import decode, encode, to_plain
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.vocabulary import BrowserFieldKey
from collectors import contract as facts
from tests.sizes import examples
from tests.unit.agent import hostile
from tests.unit.agent.rules.reports.test_network import CONTEXT

CLEAN = facts.ApplicationFacts(started_at="2026-11-20T19:04:12+00:00", duration_ms=12.5)
VERSION = facts.Field("agent.version", "agent", "available", "0.1.0")
ONLINE = facts.Field("browser.online", "devtools", "available", True)
KEYS = BrowserFieldKey.__args__  # type: ignore[attr-defined]


@settings(max_examples=examples(40))
@given(hostile.application_facts, st.lists(hostile.fields, max_size=2))
def test_any_facts_become_a_payload(
    collected: facts.ApplicationFacts, agent_fields: list[facts.Field]
) -> None:
    payload = application_report(collected, agent_fields, CONTEXT)

    assert decode(encode(payload), ApplicationPayload) == payload
    assert len(payload.snapshot.fields) == len(collected.fields) + len(agent_fields)
    assert payload.completeness == completeness(collected)
    assert "\u202e" not in encode(payload).decode()


def test_payload_contains_the_facts_unchanged() -> None:
    result = replace(
        CLEAN,
        fields=(facts.Field("os.name", "file", "available", "Debian"),),
        interfaces=(facts.InterfaceFields("eth0", (facts.Field("mtu", "s", "available", 1500),)),),
        peripherals=(facts.PeripheralFields("usb-1", "usb", ()),),
        browser_fields=(ONLINE,),
    )

    payload = application_report(result, (VERSION,), CONTEXT)

    assert payload.completeness == "complete"
    assert [f.key for f in payload.snapshot.fields] == ["os.name", "agent.version"]
    assert payload.snapshot.interfaces[0].fields[0].value == 1500
    assert payload.snapshot.peripherals[0].kind == "usb"
    assert to_plain(payload.browser_fields[0]) == {
        "key": "browser.online",
        "source": "devtools",
        "status": "available",
        "value": True,
    }
    assert payload.snapshot.duration_ms == 12.5
    assert payload.snapshot.collected_at == CLEAN.started_at


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * 1025, "x" * 1023 + "…"),
        (True, True),
        (1, 1),
        (2**60, 9007199254740991),
        (-(2**60), -9007199254740991),
        (0.5, 0.5),
        (("a", "b\x00"), ("a", "b ")),
        ((), ()),
    ],
)
def test_a_value_is_cut_to_the_limits_of_the_contract(value: Any, expected: Any) -> None:
    facts_with_field = replace(CLEAN, fields=(facts.Field("k", "s", "available", value),))

    field = application_report(facts_with_field, (), CONTEXT).snapshot.fields[0]

    assert field.value == expected
    assert type(field.value) is type(expected)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_number_is_reported_as_missing(value: float) -> None:
    not_finite = facts.Field("browser.pixelRatio", "s", "available", value)
    collected = replace(
        CLEAN, duration_ms=value, fields=(not_finite,), browser_fields=(not_finite,)
    )

    payload = application_report(collected, (), CONTEXT)

    missing = payload.snapshot.fields[0]
    assert (missing.status, missing.value) == ("collection-failed", None)
    assert missing.reason == "the value that was read is not a number"
    assert payload.browser_fields[0].status == "collection-failed"
    assert payload.snapshot.duration_ms == 0


def test_browser_fields_are_cut_to_the_limits_of_the_contract() -> None:
    collected = replace(
        CLEAN,
        browser_fields=(
            facts.Field("browser.userAgent", "s" * 300, "available", "x" * 300),
            facts.Field("browser.languages", "", "available", tuple("l" * 300 for _ in range(40))),
            facts.Field("browser.online", "s", "unsupported", reason="r" * 600),
            facts.Field("browser.platform", "s", "available", None),
            facts.Field("browser.language", "s", "permission-denied", reason=""),
        ),
    )

    agent, languages, online, platform, language = to_plain(
        application_report(collected, (), CONTEXT)
    )["browserFields"]

    assert len(agent["source"]) == len(agent["value"]) == 256
    assert languages["source"] == "unknown"
    assert [len(v) for v in languages["value"]] == [256] * 32
    assert len(online["reason"]) == 512
    assert platform["status"] == "collection-failed"
    assert platform["reason"] == language["reason"] == "no reason was given"


@pytest.mark.parametrize(
    ("browser_fields", "count"),
    [
        ((replace(ONLINE, key="browser.unknownKey"), ONLINE), 1),
        (tuple(replace(ONLINE, key=key) for key in (*KEYS, "browser.online")), len(KEYS)),
    ],
)
def test_browser_fields_beyond_the_contract_are_reported(
    browser_fields: tuple[facts.Field, ...], count: int
) -> None:
    payload = application_report(replace(CLEAN, browser_fields=browser_fields), (), CONTEXT)

    assert len(payload.browser_fields) == count
    assert payload.limitations == ("browser fields omitted: 1",)
    assert payload.snapshot.limitations == payload.limitations
    assert payload.snapshot.truncated
    assert payload.completeness == "limited"


@pytest.mark.parametrize(
    ("collected", "expected"),
    [
        (CLEAN, "complete"),
        (replace(CLEAN, cancelled=True), "partial"),
        (replace(CLEAN, failures=(facts.Failure("s", "r"),)), "partial"),
        (replace(CLEAN, limitations=("less",)), "limited"),
        (replace(CLEAN, truncated=True), "limited"),
        (replace(CLEAN, fields=(facts.Field("k", "s", "permission-denied"),)), "limited"),
        (replace(CLEAN, fields=(facts.Field("k", "s", "not-applicable"),)), "complete"),
    ],
)
def test_facts_determine_the_completeness_of_an_application_report(
    collected: facts.ApplicationFacts, expected: str
) -> None:
    assert application_report(collected, (), CONTEXT).completeness == expected
