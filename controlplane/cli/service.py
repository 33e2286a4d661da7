"""``venue-control service``: install, start and stop the service under systemd."""

import argparse
import sys

from controlplane.cli.arguments.serve_settings import settings_of
from controlplane.client.errors import UsageError
from controlplane.service.paths import OPTIONS, RESOURCES, UNIT
from controlplane.service.program import command_line
from controlplane.service.systemd import (
    ServiceState,
    SystemdService,
    local_service,
    require_root,
    unit_text,
)

RUNNING, NOT_RUNNING = 0, 1  # exit codes of `service status`


def install(options: argparse.Namespace) -> None:
    words = [word for word in options.options if word != "--"]
    text = options_text(words)
    if options.dry_run:
        sys.stdout.write(unit_text(command_line()))
        sys.stdout.write(f"\n# {OPTIONS}\n{text}")
        return
    service = _service_for_root()
    install_and_start(service, text, has_options=bool(words))


def install_and_start(service: SystemdService, text: str, *, has_options: bool) -> None:
    """Install the service and start it.

    Args:
        text: The text of a new options file.
        has_options: Whether the user gave options of `serve`. If an options file exists, it is
            kept, and these options have no effect.
    """
    is_written = service.install(text)
    print("installed: the service starts at boot")
    if is_written:
        print(f"wrote {service.options}")
    elif has_options:
        print(f"{service.options} exists and is kept: edit it to change the options")
    _start(service)


def uninstall(options: argparse.Namespace) -> None:
    service = _service_for_root()
    service.uninstall()
    print("uninstalled: the service is stopped and does not start at boot")
    if not options.purge:
        print(f"kept: database in {service.state_directory}, options in {service.options.parent}")
        return
    service.purge()
    print("deleted: the SQLite database, the options and the user; a PostgreSQL database is kept")


def start(_options: argparse.Namespace) -> None:
    _start(_service_for_root())


def stop(_options: argparse.Namespace) -> None:
    _service_for_root().stop()
    print("stopped")


def status(_options: argparse.Namespace) -> int:
    """Return 0 if the service runs, otherwise 1."""
    state = local_service().state()
    for line in describe(state):
        print(line)
    return RUNNING if state.activity == "running" else NOT_RUNNING


def describe(state: ServiceState) -> list[str]:
    if not state.is_installed:
        return ["service   not installed", "→ install it: sudo venue-control service install"]
    boot = "starts at boot" if state.starts_at_boot else "does not start at boot"
    process = f" (process {state.pid})" if state.pid else ""
    lines = [f"service   installed, {boot}", f"now       {state.activity}{process}"]
    if state.detail:
        lines.append(f"detail    {state.detail}")
    if state.restarts and state.activity != "stopped":
        lines.append(f"restarts  {state.restarts} by systemd")
    if state.activity == "stopped":
        lines.append("→ start it: sudo venue-control service start")
    elif state.activity != "running":
        lines.append(f"→ find out why: journalctl -u {UNIT} -n 50")
    return lines


def options_text(words: list[str]) -> str:
    """Return the text of a new options file, which contains the options of `serve` in ``words``.

    If ``words`` is empty, return the template.

    Raises:
        UsageError: `settings_of` refuses the value of an option, or a word is neither an option nor
            the value of an option.
        SystemExit: the command line parser refuses ``words``, for example an unknown option.
    """
    template = (RESOURCES / OPTIONS.name).read_text()
    if not words:
        return template
    from controlplane.cli.main import build_parser

    settings_of(build_parser().parse_args(["serve", *words]))
    head = template.partition("\n\n")[0]
    return head + "\n\n" + "".join(f"{line}\n" for line in _lines(words))


def _lines(words: list[str]) -> list[str]:
    """Return one line for each option, with its value."""
    lines: list[str] = []
    for word in words:
        if word.startswith("-"):
            lines.append(word)
        elif lines and " " not in lines[-1] and "=" not in lines[-1]:
            lines[-1] += f" {word}"  # the value of the option in the last line
        else:
            raise UsageError(f"{word!r} is not an option of `venue-control serve`")
    return lines


def _start(service: SystemdService) -> None:
    service.start()
    print(f"started: {service.state().detail}")


def _service_for_root() -> SystemdService:
    require_root()
    return local_service()
