"""Rules for the connectivity record: interruptions and losses of power in the last days."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from agent.presentation.connectivity.record import (
    ReportedRecord,
    incidents_of,
    record_of,
    totals_of,
)
from agent.presentation.findings.conditions import at_least
from agent.presentation.findings.rule import Detect, NoteRule, Rule, Values, WarningRule
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import format_seconds, times
from agent.wire.payloads.history import Cause, EventKind
from agent.wire.payloads.history_lines import HourRow

REPEATED: Final = 8
"""Minimum number of interruptions with one cause in 7 days for a finding. Many providers interrupt
the connection once a night: these 7 interruptions alone must cause no finding."""
REPEATED_TODAY: Final = 5
"""Minimum number of interruptions with one cause in 24 hours for a finding."""
LONG_S: Final = 300
"""Minimum downtime with one cause in 7 days, in seconds, for a finding."""
POWER_LOST: Final = 2
"""Minimum number of losses of power in 7 days for a finding."""
THROTTLED: Final = 3
"""Minimum number of hours with a slowed-down processor in 7 days for a finding."""
ROAMS_FROM: Final = 30
"""Minimum number of changes of the Wi-Fi access point in 24 hours for a finding."""
MOSTLY: Final = 0.7
"""A finding names hours of the day if they contain at least this share of the downtime."""
MOSTLY_HOURS_MAX: Final = 4
"""Maximum number of consecutive hours of the day that a finding names."""
MOSTLY_FROM: Final = 3
"""Minimum number of interruptions for a finding that names hours of the day."""

_DAY: Final = timedelta(days=1)
_WEEK_DAYS: Final = 7
_WHEN: Final = (
    f"at least {REPEATED} times or for {format_seconds(LONG_S)} in 7 days, or {REPEATED_TODAY}"
    " times in 24 hours"
)
_EVENTS: Final = "history.events"
_NO_LINK: Final = re.compile(r"(\S{1,64}) has no link")
"""Matches the evidence of an incident with the cause "link-down" (`rules.connectivity.cause`)."""


def _period(record: ReportedRecord, now: datetime, days: int = _WEEK_DAYS) -> str:
    """Return the length of the record, at most ``days``: ``7 days``, ``24 hours``, ``5 h``."""
    age = now - (record.since or now)
    if age < _DAY:
        return format_seconds(age.total_seconds(), units=1)
    day_count = min(days, math.ceil(age / _DAY))
    return f"{day_count} days" if day_count > 1 else "24 hours"


def _outages(facts: SnapshotFacts, cause: Cause, count_min: int = REPEATED) -> Iterator[Values]:
    """Yield the values of the sentence about the outages with one cause.

    Yield nothing if the outages were few and short.
    """
    total = next((total for total in totals_of(facts.machine) if total.cause == cause), None)
    if total is None:
        return
    record, now = record_of(facts.machine), facts.taken_at
    if record is None or now is None:
        return
    incidents = [incident for incident in record.incidents if incident.cause == cause]
    today = [incident for incident in incidents if now - incident.began_at <= _DAY]
    count_today = sum(incident.count for incident in today)
    is_rare = total.count < count_min and count_today < REPEATED_TODAY
    if is_rare and total.downtime_s < LONG_S:
        return
    if count_today >= REPEATED_TODAY:
        count, period = count_today, _period(record, now, days=1)
        downtime_s = sum(incident.downtime_s for incident in today)
        hours = tuple(row for row in record.hours if now - row.hour.at <= _DAY)
    else:
        count, period = total.count, _period(record, now)
        downtime_s, hours = float(total.downtime_s), record.hours
    yield {
        "times": times(count),
        "period": period,
        "duration": format_seconds(downtime_s),
        "hours": _peak_hours(hours, cause) if count >= MOSTLY_FROM else "",
        "why": incidents[0].evidence if incidents else "the reason is not in the report",
    }


def _peak_hours(rows: Iterable[HourRow], cause: Cause) -> str:
    """Return the hours of the day with most of the downtime, such as ``, mostly 18:00-20:00``.

    Return "" if more than `MOSTLY_HOURS_MAX` hours are needed for the share `MOSTLY`.
    """
    by_hour: Counter[int] = Counter()
    for row in rows:
        by_hour[row.hour.at.hour] += dict(row.downtime).get(cause, 0)
    if not by_hour.total():
        return ""
    for length in range(1, MOSTLY_HOURS_MAX + 1):
        sums = {
            first: sum(by_hour[(first + offset) % 24] for offset in range(length))
            for first in range(24)
        }
        first = max(sums, key=lambda first_hour: sums[first_hour])
        if sums[first] >= MOSTLY * by_hour.total():
            return f", mostly {first:02}:00-{(first + length) % 24:02}:00"
    return ""


def _repeated(cause: Cause, count_min: int = REPEATED) -> Detect[SnapshotFacts]:
    return lambda facts: _outages(facts, cause, count_min)


def _lost_interface(facts: SnapshotFacts) -> tuple[str, str]:
    """Return the name and the type of the interface that lost its link last; "" if unknown."""
    incidents = incidents_of(facts.machine)
    reasons = (incident.evidence for incident in incidents if incident.cause == "link-down")
    match = next(filter(None, map(_NO_LINK.match, reasons)), None)
    types = {name: link.text("interface.type") for name, link in facts.interfaces}
    return (match[1], types.get(match[1], "")) if match else ("", "")


def _wifi_lost(facts: SnapshotFacts) -> Iterator[Values]:
    for values in _outages(facts, "link-down"):
        if _lost_interface(facts)[1] == "wifi":
            signal = facts.machine.number("history.signalMinDbm24h")
            ending = ""
            if signal is not None:
                ending = f"; in the last 24 hours, the signal fell to {signal:.0f} dBm"
            yield {**values, "hours": values["hours"] + ending}


def _cable_lost(facts: SnapshotFacts) -> Iterator[Values]:
    for values in _outages(facts, "link-down"):
        name, kind = _lost_interface(facts)
        if kind != "wifi":
            yield {**values, "link": f"link of {name}" if name else "network link"}


def _events(kind: EventKind, count_min: int) -> Detect[SnapshotFacts]:
    """Return a function that detects at least ``count_min`` events in 7 days.

    It yields their number and the detail of the last event.
    """

    def detect(facts: SnapshotFacts) -> Iterator[Values]:
        now = facts.taken_at
        # Searching the lines is faster than parsing the record.
        if now is None or not any(kind in line for line in facts.machine.texts(_EVENTS)):
            return
        record = record_of(facts.machine)
        if record is None:
            return
        events_of_kind = (event for event in record.events if event.kind == kind)
        recent = [
            event for event in events_of_kind if timedelta() <= now - event.at <= _WEEK_DAYS * _DAY
        ]
        if len(recent) >= count_min:
            count, why = times(len(recent)), recent[0].detail
            yield {"times": count, "period": _period(record, now), "why": why}

    return detect


def _throttled(facts: SnapshotFacts) -> Iterator[Values]:
    for values in _events("processor-throttled", THROTTLED)(facts):
        # The sentence needs a number of hours: "3", not "3 times".
        yield {**values, "times": values["times"].removesuffix(" times")}


_FIELDS: Final = "history.causes7d, history.recent, history.hours"
_AT_NIGHT: Final = "; if it is off at night on purpose, set `recorder.quiet_hours`"

HISTORY_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    WarningRule(
        "wifi-lost",
        f"{_FIELDS}, history.signalMinDbm24h, interface.type",
        f"the Wi-Fi had no link {_WHEN}",
        "The Wi-Fi link was lost {times} in {period}, {duration} in total{hours}.",
        "move the access point or the machine closer, or use a cable; if the signal is better than"
        " -70 dBm, restart the access point and check whether it changes its channel",
        _wifi_lost,
    ),
    WarningRule(
        "link-lost",
        f"{_FIELDS}, interface.type",
        f"a cable had no link {_WHEN}",
        "The {link} was lost {times} in {period}, {duration} in total{hours}.",
        "replace the cable, use another port of the switch, and check the switch's power supply"
        + _AT_NIGHT,
        _cable_lost,
    ),
    WarningRule(
        "no-address-repeatedly",
        _FIELDS,
        f"the machine had a link, but no address, {_WHEN}",
        "The machine was without an address {times} in {period}, {duration} in total{hours}.",
        "check the router's DHCP server, and whether its range has enough addresses",
        _repeated("no-address"),
    ),
    WarningRule(
        "address-shared",
        _FIELDS,
        "another machine used this machine's address at least once in 7 days",
        "Two machines used one address, {times} in {period}: {why}.",
        "give one of them another address, or use DHCP for both",
        _repeated("address-conflict", 1),
    ),
    WarningRule(
        "router-outages",
        _FIELDS,
        f"the gateway did not answer, {_WHEN}",
        "The router stopped answering {times} in {period}, {duration} in total{hours}.",
        f"check the router's power supply and log; replace it if it fails again{_AT_NIGHT}",
        _repeated("gateway-silent"),
    ),
    WarningRule(
        "name-server-outages",
        _FIELDS,
        f"no name server answered, {_WHEN}",
        "The name servers stopped answering {times} in {period}, {duration} in total{hours}; the"
        " network worked.",
        "configure a second name server in the router, of another provider",
        _repeated("name-servers-silent"),
    ),
    WarningRule(
        "provider-outages",
        _FIELDS,
        f"nothing beyond the gateway answered, {_WHEN}",
        "The internet provider was down {times} in {period}, {duration} in total{hours}; the local"
        " network worked.",
        "report the times to the provider: `venue-agent timeline` shows them; restart the modem",
        _repeated("provider-down"),
    ),
    WarningRule(
        "service-refusals",
        _FIELDS,
        f"the service refused the agent {_WHEN}",
        "The service refused the agent {times} in {period}, {duration} in total: {why}.",
        "run `venue-agent doctor`: it checks the API key, its location and the binding",
        _repeated("service-refuses"),
    ),
    WarningRule(
        "power-losses",
        _EVENTS,
        f"at least {POWER_LOST} times in 7 days",
        "This machine lost power {times} in {period}.",
        "check its plug, its power supply and the circuit; shut it down before it is switched off",
        _events("power-lost", POWER_LOST),
    ),
    WarningRule(
        "router-address-shared",
        _EVENTS,
        "two MACs alternately had the gateway's address, at least once in 7 days",
        "Two machines use the router's address: {why}.",
        "use the MACs (see the network report) to find the machine that is not the router, and give"
        " it another address",
        _events("gateway-conflict", 1),
    ),
    WarningRule(
        "queue-outages",
        _FIELDS,
        f"a print queue was stopped or accepted no jobs {_WHEN}",
        "A print queue stopped {times} in {period}, {duration} in total: {why}.",
        "check the printer's paper, cover and connection, then resume the queue; delete a queue"
        " that is not used",
        _repeated("queue-stopped"),
    ),
    WarningRule(
        "kiosk-outages",
        _FIELDS,
        f"the kiosk's browser had no page open, or did not answer, {_WHEN}",
        "The kiosk's page was missing {times} in {period}, {duration} in total: {why}.",
        "check the browser's log for the reason, and whether memory ran out; configure the system"
        " to restart the browser automatically",
        _repeated("page-missing"),
    ),
    WarningRule(
        "processor-throttled",
        _EVENTS,
        f"in at least {THROTTLED} hours of 7 days",
        "The processor was slowed down because of heat in {times} hours of {period}.",
        "remove dust, check the fan, and give the machine more air",
        _throttled,
    ),
    NoteRule(
        "device-absences",
        _FIELDS,
        f"a watched device did not answer, or another device had its address, {_WHEN}",
        "A watched device was gone {times} in {period}, {duration} in total: {why}.",
        f"check its power supply, and its cable or Wi-Fi{_AT_NIGHT}",
        _repeated("device-absent"),
    ),
    NoteRule(
        "wifi-roaming",
        "history.roams24h",
        f"at least {ROAMS_FROM}",
        "The Wi-Fi changed its access point {times} in 24 hours.",
        "bind the machine to one access point (BSSID), or move it closer to an access point",
        at_least("history.roams24h", ROAMS_FROM, "times", lambda count: times(round(count))),
    ),
    NoteRule(
        "service-outages",
        _FIELDS,
        f"the service did not answer, {_WHEN}",
        "The service stopped answering {times} in {period}, {duration} in total{hours}; the"
        " internet worked.",
        "change nothing in the venue; ask the operator of the service",
        _repeated("service-down"),
    ),
    NoteRule(
        "service-unreachable-repeatedly",
        _FIELDS,
        "the service did not answer for an unknown reason, or a captive portal or a proxy answered"
        f" instead of it, {_WHEN}",
        "The service could not be reached {times} in {period}, {duration} in total{hours}.",
        "compare the times with the interruptions of other venues: if no other venue was"
        " interrupted at these times, the cause was the internet provider",
        _repeated("unreachable"),
    ),
)
