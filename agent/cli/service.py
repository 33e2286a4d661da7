"""`venue-agent service`: installs and controls the service.

The actions are the same with systemd, launchd and Windows.
"""

import argparse
import contextlib
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from agent.adapters.service_manager.contract import Activity, ServiceManager, ServiceState
from agent.adapters.service_manager.detect import detect_service_manager
from agent.adapters.service_manager.first_config import InstallOptions, write_first_config
from agent.adapters.service_manager.last_exit import LastExit, read_last_exit
from agent.adapters.upgrade.record import read_upgrade, upgrade_document
from agent.cli.terminal.options import add_json_option
from agent.cli.terminal.screen import Screen, Style
from agent.config.model import may_exist
from agent.config.rights import no_configuration, with_sudo
from agent.errors import ConfigMissing, StateError

RUNNING, NOT_RUNNING = 0, 1
_STYLES: Final[dict[Activity, Style]] = {"running": "good", "failed": "bad", "stopped": "warn"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = actions.add_parser("install", help="start the agent now and at boot")
    add = install.add_argument
    add("--base-url", metavar="URL", help="the server's address, for a new configuration")
    add("--location", metavar="ID", help="the venue's location id, for a new configuration")
    add("--api-key-file", type=Path, metavar="F", help="file with the API key; - for stdin")
    uninstall = actions.add_parser("uninstall", help="stop the agent and remove the service")
    uninstall.add_argument(
        "--purge",
        action="store_true",
        help="also delete the identity, state, configuration, API key and user of the service",
    )
    actions.add_parser("start", help="start the service and wait until it is ready")
    actions.add_parser("stop", help="stop the service and wait until it has ended")
    status = actions.add_parser("status", help="show the state; exit code 0 if the service runs")
    add_json_option(status)


def run(options: argparse.Namespace) -> int:
    manager = detect_service_manager()
    if options.action == "status":
        return _status(manager, as_json=options.json)
    manager.require_rights()
    if options.action == "install":
        install_options = InstallOptions(options.base_url, options.location, options.api_key_file)
        return install(manager, install_options)
    if options.action == "uninstall":
        return uninstall(manager, purge=options.purge)
    if options.action == "start":
        _require_configuration(manager)
        manager.start()
        _print("started")
    else:
        manager.stop()
        _print("stopped")
    return 0


def _require_configuration(manager: ServiceManager) -> None:
    if manager.state().is_installed and not manager.paths.config.exists():
        raise ConfigMissing((no_configuration(),))


def install(manager: ServiceManager, install_options: InstallOptions) -> int:
    """Install the service, write a first configuration, and start the service.

    An existing configuration is kept.
    """
    paths = manager.paths
    had_config = paths.config.exists()
    manager.prepare()
    written_files = write_first_config(install_options, paths)
    manager.install()
    for file in written_files:
        manager.protect(file)
        _print(f"wrote {file}")
    _print("installed: the service starts at boot")
    if had_config and (install_options.base_url or install_options.location_id):
        _print(
            f"{paths.config} already exists and is kept."
            " To change the address or the location, edit this file"
        )
    if not paths.config.exists():
        _print(
            f"not started: {paths.config} does not exist. Repeat the command with --base-url,"
            " --location and --api-key-file, or write the file and run `venue-agent service start`"
        )
        return 0
    if written_files:
        manager.restart()
    else:
        manager.start()
    _print("started")
    return 0


def uninstall(manager: ServiceManager, *, purge: bool) -> int:
    """Stop and unregister the service; with ``purge`` also delete its files."""
    manager.uninstall()
    _print("uninstalled: the service is stopped and removed")
    paths = manager.paths
    if not purge:
        _print(f"kept: identity and state in {paths.state}, configuration {paths.config}")
        return 0
    shutil.rmtree(paths.state, ignore_errors=True)
    for file in (paths.config, paths.api_key):
        file.unlink(missing_ok=True)
    remaining_paths = [
        str(path) for path in (paths.state, paths.config, paths.api_key) if path.exists()
    ]
    if remaining_paths:
        _print(f"could not be deleted: {', '.join(remaining_paths)}")
        return 1
    with contextlib.suppress(OSError):  # the directory may contain other files
        paths.config.parent.rmdir()
    deleted_items = ("identity", "state", "configuration", "API key", *manager.purge())
    _print(f"deleted: {', '.join(deleted_items[:-1])} and {deleted_items[-1]}")
    return 0


def _status(manager: ServiceManager, *, as_json: bool) -> int:
    state = manager.state()
    last = _last_exit(manager.paths.state)
    if as_json:
        document = {
            **asdict(state),
            "last_exit": None if last is None else last.describe(),
            "upgrade": upgrade_document(),
        }
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        screen = Screen()
        show(screen, state, last, manager.paths.config)
        if (upgrade := read_upgrade()) is not None:
            screen.fact("upgrade", upgrade.describe(), "warn")
    return RUNNING if state.activity == "running" else NOT_RUNNING


def _last_exit(state_dir: Path) -> LastExit | None:
    """Return how the last run ended, or None if this is unknown.

    If the file ``last-exit`` is not the agent's own file, the error is printed to stderr.
    """
    try:
        return read_last_exit(state_dir)
    except StateError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"venue-agent: {line}\n")
        return None


def show(screen: Screen, state: ServiceState, last: LastExit | None, config: Path) -> None:
    """Print the state, and what to do if the service does not run."""
    for name, value in describe(state, last):
        screen.fact(name, value, _STYLES.get(state.activity, "none") if name == "now" else "none")
    if advice := _advice(state, config):
        screen.paragraph(f"→ {advice}")


def describe(state: ServiceState, last: LastExit | None) -> list[tuple[str, str]]:
    """Return the facts of the state as pairs of a name and a value."""
    if not state.is_installed:
        return [("service", "not installed")]
    boot = "starts at boot" if state.starts_at_boot else "does not start at boot"
    process = f" (process {state.pid})" if state.pid else ""
    rows = [("service", f"installed, {boot}"), ("now", f"{state.activity}{process}")]
    if state.detail:
        rows.append(("detail", state.detail))
    if state.restarts and state.activity != "stopped":
        rows.append(("restarts", f"{state.restarts} by the service manager"))
    if last is not None:
        rows.append(("last exit", last.describe()))
    return rows


def _advice(state: ServiceState, config: Path) -> str | None:
    """Return what to do next, or None."""
    if not state.is_installed:
        return f"install it: {with_sudo('venue-agent service install')}"
    if state.activity not in {"stopped", "failed"}:
        return None
    if not may_exist(config):
        return (
            f"{config} is missing: write it, or run {with_sudo('venue-agent service install')}"
            " with --base-url, --location and --api-key-file"
        )
    start = with_sudo("venue-agent service start")
    if state.activity == "failed":
        return f"find out why: {with_sudo('venue-agent doctor')}, then {start}"
    return f"start it: {start}"


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
