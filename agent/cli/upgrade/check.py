"""`venue-agent upgrade check`: installed, kept and available version, and what an upgrade would do.

The command changes nothing. Only the package manager upgrades the agent.
"""

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from agent import __version__
from agent.adapters.storage.status_file import DaemonStatus, StatusFile
from agent.adapters.upgrade import record
from agent.adapters.upgrade.package_manager import WINGET_ID, Package, read_package
from agent.adapters.upgrade.record import Upgrade, read_upgrade
from agent.cli.resolve_state import ResolvedState, resolve_state
from agent.cli.terminal.options import add_config_and_json_options
from agent.cli.terminal.screen import Screen, print_json
from agent.config.rights import how_to_run_as_root, with_sudo
from agent.presentation.humanize import ago, counted
from agent.redaction.known import redact

COMPLETE, NOT_VISIBLE = 0, 3
_UPGRADE_COMMANDS: Final = {
    "apt": "apt-get install --only-upgrade venue-agent",
    "dnf": "dnf upgrade venue-agent",
    "winget": f"winget upgrade --id {WINGET_ID}",
}
_UNHOLD_COMMANDS: Final = {
    "apt": "apt-mark unhold venue-agent",
    "dnf": "dnf versionlock delete venue-agent",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about the versions.

    ``package`` is None if this machine has no supported package manager. ``kept`` is the previous
    version, to which a failed upgrade returns. ``upgrade`` is an upgrade that is not complete, is
    not verified yet, or was rolled back. ``status`` is None if no daemon runs, or if this user is
    not permitted to read its status. ``is_visible``: whether this user is permitted to read it.
    """

    package: Package | None
    kept: str | None
    upgrade: Upgrade | None
    status: DaemonStatus | None
    is_visible: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="show the versions, and what an upgrade would do now")
    add_config_and_json_options(check)


def run(options: argparse.Namespace) -> int:
    """Return 0, or 3 if this user is not permitted to see the daemon's state."""
    # The package manager is read first, because `resolve_state` drops root's rights.
    package = read_package()
    facts = _facts(package, resolve_state(options.config))
    if options.json:
        print_json(_document(facts))
    else:
        show(Screen(), facts)
    return COMPLETE if facts.is_visible else NOT_VISIBLE


def _facts(package: Package | None, resolved: ResolvedState) -> Facts:
    upgrade = read_upgrade()
    status = None
    if not resolved.is_closed and resolved.state.holder() is not None:
        status = StatusFile(resolved.state).read()
    return Facts(package, record.kept_version(upgrade), upgrade, status, not resolved.is_closed)


def _document(facts: Facts) -> dict[str, Any]:
    """Return what `--json` prints (docs/cli.md)."""
    package, status = facts.package, facts.status
    return {
        "installed": _installed(facts),
        "daemon": _daemon(facts),
        "running": None if status is None else status.version,
        "kept": facts.kept,
        "available": None if package is None else package.available,
        "package_manager": None if package is None else package.manager,
        "is_held": None if package is None else package.is_held,
        "activity": None if status is None else redact(status.activity),
        "outbox_reports": None if status is None else status.outbox_reports,
        "upgrade": None if facts.upgrade is None else asdict(facts.upgrade),
    }


def _daemon(facts: Facts) -> str:
    if not facts.is_visible:
        return "not visible"
    return "not running" if facts.status is None else "running"


def _installed(facts: Facts) -> str:
    package = facts.package
    return __version__ if package is None or package.installed is None else package.installed


def show(screen: Screen, facts: Facts) -> None:
    package, status = facts.package, facts.status
    screen.fact("installed", _installed(facts))
    if status is not None:
        heartbeat = ago(status.last_heartbeat_at)
        screen.fact("running", f"{status.version}, last accepted heartbeat {heartbeat}")
    screen.fact("kept", facts.kept or "no version")
    screen.fact("available", _available(facts))
    if package is not None and package.is_held is not None:
        screen.fact("held", "yes" if package.is_held else "no")
    if facts.upgrade is not None:
        screen.fact("last upgrade", facts.upgrade.describe(), "warn")
        if facts.upgrade.log:
            screen.fact("its log", facts.upgrade.log)
    for number, line in enumerate(_effects(facts)):
        screen.fact("" if number else "an upgrade", line)
    for line in _advice(facts):
        screen.paragraph(f"→ {line}")


def _available(facts: Facts) -> str:
    package = facts.package
    if package is None:
        return "unknown: this machine has no apt, dnf or winget"
    if package.available is None:
        return f"unknown: {package.manager} has no repository with this package"
    installed = " (installed)" if package.available == package.installed else ""
    return f"{package.available} from {package.manager}{installed}"


def _effects(facts: Facts) -> Iterator[str]:
    """Yield what an upgrade would do now."""
    status = facts.status
    if not facts.is_visible:
        yield "depends on the agent's state, which is not visible to you"
        return
    if status is None:
        yield "interrupts nothing: the agent does not run"
        return
    if status.activity != "idle":
        yield f"interrupts the running work, and repeats it: {redact(status.activity)}"
    else:
        yield "interrupts nothing: no request is running"
    if status.outbox_reports:
        yield f"keeps {counted(status.outbox_reports, 'report')} that wait, and sends them later"


def _advice(facts: Facts) -> Iterator[str]:
    package = facts.package
    if facts.upgrade is not None and facts.upgrade.advice:
        yield facts.upgrade.advice
    if not facts.is_visible:
        yield f"to see everything: {how_to_run_as_root('upgrade check')}"
    if package is None or package.available is None or package.available == package.installed:
        return
    if package.is_held and package.manager in _UNHOLD_COMMANDS:
        yield f"to permit upgrades: {with_sudo(_UNHOLD_COMMANDS[package.manager])}"
    else:
        yield f"to upgrade: {with_sudo(_UPGRADE_COMMANDS[package.manager])}"
