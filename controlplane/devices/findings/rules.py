"""The rules of all findings, by code. All functions are pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from agent import __version__
from agent.presentation.findings.findings import APPLICATION_RULES, NETWORK_RULES
from agent.presentation.findings.rule import Finding, Rule
from agent.presentation.humanize import with_more
from agent.presentation.severity import Severity
from agent.wire.vocabulary import Kind

SENTENCE_MAX: Final = 600
"""Maximum length of a stored sentence."""
DEVICE: Final = "device"
"""The subject of `FindingCount` that counts every device that is not revoked."""
ANY: Final = "any"
"""The subject that counts every device with a recent report of any kind."""

PROBLEM: Final = "problem"
"""The subject that counts problems and warnings. A device counts once for each of them."""
NON_RULE_SUBJECTS: Final = frozenset({DEVICE, ANY, PROBLEM, "network", "application"})
"""All subjects except the codes of rules."""


def version_number(version: str) -> int:
    """Return a release, such as ``1.2.3``, as a number. A later release has a larger number."""
    major, minor, patch = map(int, version.split(".")[:3])
    return (major * 1000 + minor) * 1000 + patch


RULES_VERSION: Final = version_number(__version__)
"""The version of the rules: that of the release. Each release judges the stored reports again."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """The texts that explain a rule to users, with "…" in place of the values of a report.

    ``kinds`` are the kinds of reports that the rule judges.
    """

    title: str
    severity: Severity
    fix: str
    kinds: tuple[Kind, ...]

    @property
    def subject(self) -> str:
        """Return the subject that counts the devices with a report that the rule could judge."""
        return self.kinds[0] if len(self.kinds) == 1 else ANY


def sentence_of(finding: Finding) -> str:
    """Return the sentences of a finding as one text of at most `SENTENCE_MAX` characters."""
    sentences = with_more(" ".join(finding.sentences), finding.more, "match")
    return sentences if len(sentences) <= SENTENCE_MAX else f"{sentences[: SENTENCE_MAX - 1]}…"


def _rule_texts() -> Mapping[str, RuleText]:
    texts: dict[str, RuleText] = {}
    rules: list[tuple[Kind, Rule[Any]]] = [("application", each) for each in APPLICATION_RULES]
    rules += (("network", each) for each in NETWORK_RULES)
    for kind, rule in rules:
        kinds = (*texts[rule.code].kinds, kind) if rule.code in texts else (kind,)
        texts[rule.code] = RuleText(
            _without_values(rule.sentence), rule.severity, _without_values(rule.fix), kinds
        )
    return texts


def _without_values(text: str) -> str:
    parts = Formatter().parse(text)
    whole = "".join(literal + ("…" if name is not None else "") for literal, name, _, _ in parts)
    return whole.replace("… …", "…").replace("….", "…")


RULES: Final = _rule_texts()
RULES_OF_BOTH_KINDS: Final = tuple(code for code, rule in RULES.items() if len(rule.kinds) > 1)
"""The rules that judge reports of both kinds.

If both reports of a device have the finding of such a rule, the device counts once.
"""


def rule_of(code: str) -> RuleText:
    """Return the texts of the rule with this code.

    A different release can have stored a code that has no rule here. Then the code is the title.
    """
    return RULES.get(code) or RuleText(code, "muted", "", ("application", "network"))
