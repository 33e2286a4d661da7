"""Builds the version-2 payload of a network report from its facts.

The most relevant facts are first in each list, so lists that are too long are cut at the end.
"""

from collections.abc import Iterator

from agent.rules.reports.context import ReportContext
from agent.rules.reports.fit import clip, clip_id, fitted, truncate
from agent.wire import limits
from agent.wire.payloads import network as wire
from agent.wire.payloads.common import Failure
from agent.wire.payloads.watched_devices import KIND_WORDS, WatchedLine
from agent.wire.vocabulary import Completeness, Outcome
from collectors import contract as facts

NO_REASON = "no reason was given"


def network_report(
    collected: facts.NetworkFacts, job: facts.NetworkJob, context: ReportContext
) -> wire.NetworkPayload:
    """Build a payload within the contract's limits, with counts of what was cut."""
    printers = collected.printers
    limitations = limitation_lines(
        (
            *_watched(collected),
            *_limitations(collected),
            *confinement_limitations(collected.confinement),
        )
    )
    endpoints = _kept_endpoints(collected)
    return wire.NetworkPayload(
        version=2,
        report_id=context.report_id,
        started_at=clip(collected.started_at),
        finished_at=context.finished_at,
        completeness=completeness(collected),
        identity=context.identity,
        environment=context.environment,
        failures=failures((*collected.failures, *_failed_sources(collected))),
        limitations=limitations,
        scope=collected.scope,
        discovery=_discovery(collected),
        endpoints=tuple(_endpoint(e) for e in endpoints),
        endpoints_omitted=len(collected.endpoints) - len(endpoints),
        printers=None
        if printers is None
        else tuple(_printer(p) for p in printers[: limits.PRINTERS_MAX]),
        network_map=_network_map(collected, job, limitations),
        unavailable=wire.Unavailable(**fitted(collected.unavailable)),
    )


def switched_off_report(
    why: str, started_at: str, job: facts.NetworkJob, context: ReportContext
) -> wire.NetworkPayload:
    """Build the network report of a machine whose configuration disables network reports.

    Facts that were not collected are null, not empty (docs/adr/0009).
    """
    state = facts.SourceState("unsupported", why)
    empty_facts = facts.NetworkFacts(
        scope="device",
        os_platform="",
        os_version=None,
        started_at=started_at,
        interfaces_source=state,
        mdns_source=state,
        scan_source=state,
        unavailable=facts.Unavailable(interfaces=why),
        limitations=(why,),
    )
    return network_report(empty_facts, job, context).model_copy(update={"network_map": None})


def completeness(collected: facts.NetworkFacts) -> Completeness:
    """Return "partial" after a failure or a cancellation, or if a source was still running.

    Return "limited" if facts were denied, cut or not tried, and "complete" if none of this is true.
    """
    states = {source.state for source in _sources(collected).values()}
    if collected.cancelled or collected.failures or states & {"failed", "running"}:
        return "partial"
    is_denied = collected.unavailable != facts.Unavailable()
    is_cut = collected.truncated or bool(_limitations(collected))
    return "limited" if is_denied or is_cut or "unsupported" in states else "complete"


def outcome_of(completeness: Completeness) -> Outcome:
    """Return the outcome of a report that has a payload."""
    return "partial" if completeness == "partial" else "completed"


def failures(collected: tuple[facts.Failure, ...]) -> tuple[Failure, ...]:
    """Fit the failures into the contract's limits.

    If some are dropped, the last failure counts them.
    """
    return truncate(
        (Failure(step=clip_id(f.step, "unknown"), reason=clip(f.reason)) for f in collected),
        limits.FAILURES_MAX,
        lambda n: Failure(step="failures", reason=f"further failures, not listed: {n}"),
    )


def limitation_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Fit the limitations into the contract's limits.

    If some are dropped, the last line counts them.
    """
    return truncate(
        (clip(line) for line in lines),
        limits.LIMITATIONS_MAX,
        lambda n: f"{n} more limitations are not listed",
    )


def confinement_limitations(confinement: facts.Confinement) -> tuple[str, ...]:
    """Return a limitation if the system refused to confine the collector.

    This limitation does not change how complete the report is, because no fact is missing.
    """
    if confinement.state != "refused":
        return ()
    return (f"the collector was not confined to what it needs to read: {confinement.reason}",)


def _limitations(collected: facts.NetworkFacts) -> tuple[str, ...]:
    lines = list(collected.limitations)
    if extra := len(collected.endpoints) - len(_kept_endpoints(collected)):
        lines.append(f"endpoints of the least interest, not listed: {extra}")
    if (extra := len(collected.printers or ()) - limits.PRINTERS_MAX) > 0:
        lines.append(f"printers beyond the limit, not listed: {extra}")
    return limitation_lines(tuple(lines))


def _watched(collected: facts.NetworkFacts) -> Iterator[str]:
    """Yield a line for each watched device.

    These lines do not change how complete the report is. They are among the limitations because the
    contract has no field for them.
    """
    for device in collected.devices:
        yield str(
            WatchedLine(
                name=device.device.name,
                kind=KIND_WORDS[device.device.kind],
                state=device.state,
                address=device.address,
                moved_from=device.moved_from,
                other_mac=device.other_mac,
                reason=device.reason,
            )
        )


def _kept_endpoints(collected: facts.NetworkFacts) -> tuple[facts.Endpoint, ...]:
    """Return the endpoints that fit. Endpoints with an invalid port are left out."""
    ports = range(limits.PORT_MIN, limits.PORT_MAX + 1)
    return tuple(e for e in collected.endpoints if e.port in ports)[: limits.ENDPOINTS_MAX]


def _failed_sources(collected: facts.NetworkFacts) -> Iterator[facts.Failure]:
    """Yield a failure for each failed source that has no entry in the collected failures."""
    listed_steps = {failure.step for failure in collected.failures}
    for step, source in _sources(collected).items():
        if source.state == "failed" and step not in listed_steps:
            yield facts.Failure(step, source.reason or NO_REASON)


def _sources(collected: facts.NetworkFacts) -> dict[str, facts.SourceState]:
    return {
        "interfaces": collected.interfaces_source,
        "mdns": collected.mdns_source,
        "scan": collected.scan_source,
    }


def _discovery(collected: facts.NetworkFacts) -> wire.Discovery | None:
    """Return how both ways of discovery ended; None if neither could be tried.

    The contract has no state for a single source that could not be tried. Such a source is reported
    as failed with the reason, but does not count as a failure (docs/adr/0009).
    """
    mdns, scan = collected.mdns_source, collected.scan_source
    if mdns.state == "unsupported" and scan.state == "unsupported":
        return None
    return wire.Discovery(mdns=_discovery_state(mdns), scan=_discovery_state(scan))


def _discovery_state(state: facts.SourceState) -> wire.DiscoveryState:
    if state.state == "running":
        return wire.SourceRunning()
    if state.state == "succeeded":
        return wire.SourceSucceeded()
    return wire.SourceFailed(reason=clip(state.reason or NO_REASON))


def _map_source(state: facts.SourceState) -> wire.MapSourceState:
    if state.state == "unsupported":
        return wire.SourceUnsupported(reason=clip(state.reason or NO_REASON))
    return _discovery_state(state)


def _endpoint(endpoint: facts.Endpoint) -> wire.Endpoint:
    ids = endpoint.matched_printer_ids[: limits.MATCHED_PRINTER_IDS_MAX]
    changes = {
        "discovered_by": tuple(dict.fromkeys(endpoint.discovered_by)),
        "matched_printer_ids": tuple(clip_id(printer_id, "unknown") for printer_id in ids),
    }
    return wire.Endpoint(**fitted(endpoint) | changes)


def _printer(printer: facts.Printer) -> wire.Printer:
    return wire.Printer(**fitted(printer) | {"id": clip_id(printer.id, "unknown")})


def _network_map(
    collected: facts.NetworkFacts, job: facts.NetworkJob, limitations: tuple[str, ...]
) -> wire.NetworkMap:
    return wire.NetworkMap(
        state="cancelled" if collected.cancelled else "completed",
        os=wire.MapOs(platform=clip(collected.os_platform), version=fitted(collected.os_version)),
        interfaces=tuple(
            wire.MapInterface(**fitted(interface)) for interface in collected.interfaces
        ),
        hosts=tuple(wire.MapHost(**fitted(host)) for host in collected.hosts),
        sources=wire.MapSources(
            **{name: _map_source(source) for name, source in _sources(collected).items()}
        ),
        limitations=limitations,
        bounds=wire.MapBounds(
            max_hosts=job.max_hosts,
            max_services=job.max_services,
            max_duration_ms=round(job.max_duration_s * 1000),
            ports=job.ports,
        ),
        truncated=collected.truncated,
    )
