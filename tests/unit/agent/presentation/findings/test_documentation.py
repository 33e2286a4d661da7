"""Tests that docs/findings.md lists each rule exactly as the code defines it, and that the rules of
application reports read only documented fields.
"""

import re
from string import Formatter

import pytest

from agent.presentation.findings.findings import APPLICATION_RULES, NETWORK_RULES
from agent.presentation.findings.rule import LABELS, Rule
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.wire.payloads.network import NetworkPayload
from agent.wire.vocabulary import BrowserFieldKey
from tests.paths import ROOT

HEADING = "| severity | sentence | condition | fields | fix |\n|---|---|---|---|---|\n"
AnyRule = Rule[SnapshotFacts] | Rule[NetworkPayload]
DOCUMENTED = (ROOT / "docs/application-fields.md").read_text()


def rows_of(rules: tuple[AnyRule, ...]) -> str:
    """Return the table that docs/findings.md must contain, with placeholders in italics."""
    return HEADING + "".join(map(row_of, rules))


def row_of(rule: AnyRule) -> str:
    sentence, fix = map(with_italic_placeholders, (rule.sentence, rule.fix))
    fields = re.sub(r"[\w.<>\[\]]+\.[\w.<>\[\]]+", r"`\g<0>`", rule.fields)
    return f"| {LABELS[rule.severity]} | {sentence} | {rule.condition} | {fields} | {fix} |\n"


def with_italic_placeholders(template: str) -> str:
    parts = Formatter().parse(template)
    return "".join(text + (f"*{name}*" if name else "") for text, name, _, _ in parts)


@pytest.mark.parametrize("rules", [APPLICATION_RULES, NETWORK_RULES])
def test_the_page_findings_lists_each_rule(rules: tuple[AnyRule, ...]) -> None:
    assert rows_of(rules) in (ROOT / "docs/findings.md").read_text()


def test_each_application_rule_reads_documented_fields() -> None:
    for rule in APPLICATION_RULES:
        for key in rule.fields.split(", "):
            is_documented = key in BrowserFieldKey.__args__ or re.search(
                rf"`{re.escape(key.replace('<role>', 'printSpooler'))}`", DOCUMENTED
            )
            assert is_documented, key


@pytest.mark.parametrize("rules", [APPLICATION_RULES, NETWORK_RULES])
def test_codes_are_unique_and_only_sentences_end_with_a_period(rules: tuple[AnyRule, ...]) -> None:
    codes = [rule.code for rule in rules]
    assert len(codes) == len(set(codes)) >= 12
    for rule in rules:
        assert rule.sentence.endswith(".")
        assert not rule.fix.endswith(".")
        assert rule.fix[0].islower() or rule.fix.startswith("`")


def test_there_are_at_least_twenty_rules() -> None:
    assert len(APPLICATION_RULES) + len(NETWORK_RULES) >= 20
