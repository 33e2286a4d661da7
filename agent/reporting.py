"""Composition of the parts that make reports. Imported when the first report is wanted."""

import sys
from collections.abc import Callable, Iterator, Sequence

from agent import __version__
from agent.adapters import machine
from agent.adapters.clock import Clock
from agent.adapters.collector_process import CollectorProcess, default_command
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.config.capabilities import capabilities_of
from agent.config.model import LocalConfig
from agent.rules.reports.agent_facts import AgentFacts
from agent.rules.reports.context import environment_of
from agent.tasks.collection import Collection
from agent.tasks.health_board import HealthBoard
from agent.tasks.report_maker import ReportMaker
from agent.tasks.session.binding_state import BindingState
from agent.wire.payloads.common import Environment
from collectors.contract import Field

SOURCE = "agent"


def build_collection(
    *,
    config: LocalConfig,
    binding_state: BindingState,
    memory: PrinterMemory,
    health: HealthBoard,
    clock: Clock,
    on_activity: Callable[[str], None],
    agent_facts: Callable[[], AgentFacts],
    collector_command: Callable[[str], Sequence[str]] | None,
) -> Collection:
    """Put together what turns a request into a sealed report."""
    maker = ReportMaker(
        config=config,
        binding_state=binding_state,
        clock=clock,
        environment=environment_here(capabilities_of(config)),
        agent_fields=lambda: agent_fields(agent_facts()),
    )
    return Collection(
        collectors=CollectorProcess(collector_command or default_command),
        maker=maker,
        memory=memory,
        health=health,
        clock=clock,
        on_activity=on_activity,
    )


def environment_here(capabilities: tuple[str, ...]) -> Environment:
    """Describe this build on this machine."""
    system, release, arch = machine.system_release_arch()
    return environment_of(
        agent_version=__version__,
        system=system,
        release=release,
        arch=arch,
        os_platform=sys.platform,
        capabilities=capabilities,
    )


def agent_fields(facts: AgentFacts) -> Iterator[Field]:
    """Tell the daemon's facts as snapshot fields (docs/application-fields.md)."""
    yield Field("agent.version", SOURCE, "available", __version__)
    yield Field("agent.uptimeSeconds", SOURCE, "available", facts.uptime_s)
    yield Field("agent.outboxReports", SOURCE, "available", facts.outbox_reports)
    yield Field("agent.outboxBytes", SOURCE, "available", facts.outbox_bytes)
    yield Field("agent.configDigest", SOURCE, "available", facts.config_digest)
    if facts.last_exit is None:
        reason = "no service manager told how the agent ended the last time"
        yield Field("agent.lastExit", SOURCE, "not-applicable", None, reason)
    else:
        yield Field("agent.lastExit", "systemd", "available", facts.last_exit)
    key = "agent.lastHeartbeatAt"
    if facts.last_heartbeat_at is None:
        yield Field(key, SOURCE, "not-applicable", None, "none since the agent's start")
    else:
        yield Field(key, SOURCE, "available", facts.last_heartbeat_at)
