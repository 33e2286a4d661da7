"""Network facts → the version-2 payload. The facts come best first, so cuts take the tail."""

import math
from collections.abc import Iterator

from agent.rules.reports.context import ReportContext
from agent.rules.reports.fit import clip, clip_id, take
from agent.wire import limits
from agent.wire.payloads import network as wire
from agent.wire.payloads.common import Failure
from agent.wire.vocabulary import Completeness, Outcome
from collectors import contract as facts

NO_REASON = "no reason was given"


def network_report(
    found: facts.NetworkFacts, job: facts.NetworkJob, context: ReportContext
) -> wire.NetworkPayload:
    """Build a payload inside the contract's limits; what was cut is counted in it."""
    printers = found.printers
    limitations = limitation_lines((*_limitations(found), *unconfined(found.confinement)))
    endpoints = _endpoints_kept(found)
    return wire.NetworkPayload(
        version=2,
        report_id=context.report_id,
        started_at=clip(found.started_at),
        finished_at=context.finished_at,
        completeness=completeness(found),
        identity=context.identity,
        environment=context.environment,
        failures=failures((*found.failures, *_failed_sources(found))),
        limitations=limitations,
        scope=found.scope,
        discovery=_discovery(found),
        endpoints=tuple(_endpoint(e) for e in endpoints),
        endpoints_omitted=len(found.endpoints) - len(endpoints),
        printers=None
        if printers is None
        else tuple(_printer(p) for p in printers[: limits.PRINTERS_MAX]),
        network_map=_network_map(found, job, limitations),
        unavailable=_unavailable(found.unavailable),
    )


def switched_off_report(why: str, started_at: str, context: ReportContext) -> wire.NetworkPayload:
    """Answer for a kind that is not allowed here: nothing was looked for, and ``why`` says so.

    What was not looked for is null, not an empty finding (docs/adr/0009).
    """
    return wire.NetworkPayload(
        version=2,
        report_id=context.report_id,
        started_at=clip(started_at),
        finished_at=context.finished_at,
        completeness="limited",
        identity=context.identity,
        environment=context.environment,
        failures=(),
        limitations=limitation_lines((why,)),
        scope="device",
        discovery=None,
        endpoints=(),
        endpoints_omitted=0,
        printers=None,
        network_map=None,
        unavailable=wire.Unavailable(interfaces=clip(why)),
    )


def completeness(found: facts.NetworkFacts) -> Completeness:
    """Judge: a failed or interrupted source makes it partial, a denied one limited."""
    sources = (found.interfaces_source, found.mdns_source, found.scan_source)
    if found.cancelled or found.failures or any(s.state in {"failed", "running"} for s in sources):
        return "partial"
    is_denied = found.unavailable != facts.Unavailable()
    if (
        is_denied
        or found.truncated
        or _limitations(found)
        or any(s.state == "unsupported" for s in sources)
    ):
        return "limited"
    return "complete"


def outcome_of(judged: Completeness) -> Outcome:
    """What a report that was made at all is called at the service."""
    return "partial" if judged == "partial" else "completed"


def failures(found: tuple[facts.Failure, ...]) -> tuple[Failure, ...]:
    """Clip the failures; the last one says how many there was no room for."""
    return take(
        (Failure(step=clip_id(f.step, "unknown"), reason=clip(f.reason)) for f in found),
        limits.FAILURES_MAX,
        lambda n: Failure(step="failures", reason=f"{n} more failures are not listed"),
    )


def limitation_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Clip the limitations; the last one says how many there was no room for."""
    return take(
        (clip(line) for line in lines),
        limits.LIMITATIONS_MAX,
        lambda n: f"{n} more limitations are not listed",
    )


def unconfined(confinement: facts.Confinement) -> tuple[str, ...]:
    """Say that the collector ran with all rights of its account where the system could have held
    it. No fact is missing for it: the report is as complete as without."""
    if confinement.state != "refused":
        return ()
    return (f"the collector was not confined to what it needs to read: {confinement.reason}",)


def _limitations(found: facts.NetworkFacts) -> tuple[str, ...]:
    lines = list(found.limitations)
    if extra := len(found.endpoints) - len(_endpoints_kept(found)):
        lines.append(f"{extra} endpoints of the least interest are left out of the list")
    if (extra := len(found.printers or ()) - limits.PRINTERS_MAX) > 0:
        lines.append(f"{extra} printers are left out of the list")
    return limitation_lines(tuple(lines))


def _endpoints_kept(found: facts.NetworkFacts) -> tuple[facts.Endpoint, ...]:
    """Return what fits; a stranger may announce a port that is none, such as 0."""
    ports = range(limits.PORT_MIN, limits.PORT_MAX + 1)
    return tuple(e for e in found.endpoints if e.port in ports)[: limits.ENDPOINTS_MAX]


def _failed_sources(found: facts.NetworkFacts) -> Iterator[facts.Failure]:
    """Yield a failure for each source that broke and is not among the failures yet."""
    listed = {failure.step for failure in found.failures}
    sources = {
        "interfaces": found.interfaces_source,
        "mdns": found.mdns_source,
        "scan": found.scan_source,
    }
    for step, source in sources.items():
        if source.state == "failed" and step not in listed:
            yield facts.Failure(step, source.reason or NO_REASON)


def _discovery(found: facts.NetworkFacts) -> wire.Discovery | None:
    """Tell how the two ways of discovery ended; None when neither could be tried.

    The contract has no word for a source that could not be tried while the other was: it is told
    as failed with the reason why, and is neither a failure nor partial (docs/adr/0009).
    """
    mdns, scan = found.mdns_source, found.scan_source
    if mdns.state == scan.state == "unsupported":
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


def _endpoint(found: facts.Endpoint) -> wire.Endpoint:
    return wire.Endpoint(
        address=clip(found.address),
        host=clip(found.host),
        port=found.port,
        label=clip(found.label),
        model=_clip_or_none(found.model),
        discovered_by=tuple(dict.fromkeys(found.discovered_by)),
        status=found.status,
        mac_address=_clip_or_none(found.mac_address),
        matched_printer_ids=tuple(
            clip_id(i, "unknown")
            for i in found.matched_printer_ids[: limits.MATCHED_PRINTER_IDS_MAX]
        ),
    )


def _printer(found: facts.Printer) -> wire.Printer:
    return wire.Printer(
        id=clip_id(found.id, "unknown"),
        name=clip(found.name),
        transport=found.transport,
        address=_clip_or_none(found.address),
        status=found.status,
        reason=_clip_or_none(found.reason),
        matched_endpoint=_clip_or_none(found.matched_endpoint),
    )


def _network_map(
    found: facts.NetworkFacts, job: facts.NetworkJob, limitations: tuple[str, ...]
) -> wire.NetworkMap:
    return wire.NetworkMap(
        state="cancelled" if found.cancelled else "completed",
        os=wire.MapOs(platform=clip(found.os_platform), version=_clip_or_none(found.os_version)),
        interfaces=tuple(_interface(i) for i in found.interfaces),
        hosts=tuple(_host(h) for h in found.hosts),
        sources=wire.MapSources(
            interfaces=_map_source(found.interfaces_source),
            mdns=_map_source(found.mdns_source),
            scan=_map_source(found.scan_source),
        ),
        limitations=limitations,
        bounds=wire.MapBounds(
            max_hosts=job.max_hosts,
            max_services=job.max_services,
            max_duration_ms=round(job.max_duration_s * 1000),
            ports=job.ports,
        ),
        truncated=found.truncated,
    )


def _interface(found: facts.Interface) -> wire.MapInterface:
    return wire.MapInterface(
        name=clip(found.name),
        addresses=tuple(
            wire.MapAddress(address=clip(a.address), family=a.family, prefix_length=a.prefix_length)
            for a in found.addresses
        ),
        gateways=tuple(clip(g) for g in found.gateways),
        mac_address=_clip_or_none(found.mac_address),
    )


def _host(found: facts.Host) -> wire.MapHost:
    return wire.MapHost(
        address=clip(found.address),
        interface_name=_clip_or_none(found.interface_name),
        hostname=_clip_or_none(found.hostname),
        mac_address=_clip_or_none(found.mac_address),
        services=tuple(
            wire.MapService(
                name=_clip_or_none(s.name),
                type=_clip_or_none(s.type),
                port=s.port,
                source=s.source,
                reachable=s.reachable,
            )
            for s in found.services
        ),
        reachability=found.reachability,
        latency_ms=_finite(found.latency_ms),
        sources=found.sources,
    )


def _unavailable(found: facts.Unavailable) -> wire.Unavailable:
    return wire.Unavailable(
        mac_address=_clip_or_none(found.mac_address),
        interfaces=_clip_or_none(found.interfaces),
        gateway=_clip_or_none(found.gateway),
        os_version=_clip_or_none(found.os_version),
    )


def _finite(number: float | None) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return number if number is not None and math.isfinite(number) else None


def _clip_or_none(text: str | None) -> str | None:
    return None if text is None else clip(text)
