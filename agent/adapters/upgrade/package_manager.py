"""Reads the installed and the available version of the agent from the package manager.

Nothing is downloaded: the result is as old as the package manager's last update of its lists.
Sources: apt-cache(8) `policy`, apt-mark(8) `showhold`, dnf(8) `repoquery`, rpm(8), winget's `list`.
"""

import re
from dataclasses import dataclass
from typing import Final

from agent.adapters.service_manager.commands import Run, run_program
from agent.adapters.service_manager.contract import ServiceManagerError

PACKAGE: Final = "venue-agent"
WINGET_ID: Final = "VenueAgent.VenueAgent"
COMMAND_TIMEOUT_S: Final = 10.0
_VERSION: Final = re.compile(r"[0-9][\w.+:~^-]{0,80}")


@dataclass(frozen=True, slots=True)
class Package:
    """The agent's package. A field is None if the package manager does not report it.

    ``is_held`` is True if an administrator has excluded the package from upgrades.
    """

    manager: str
    installed: str | None = None
    available: str | None = None
    is_held: bool | None = None


def read_package(run: Run = run_program) -> Package | None:
    """Return the agent's package; None if this machine has no supported package manager."""
    for read in (_read_apt, _read_dnf, _read_winget):
        if (package := read(run)) is not None:
            return package
    return None


def _read_apt(run: Run) -> Package | None:
    policy = _output(run, "apt-cache", "policy", PACKAGE)
    if policy is None:
        return None
    held = _output(run, "apt-mark", "showhold", PACKAGE)
    return Package(
        "apt",
        _version_after("Installed:", policy),
        _version_after("Candidate:", policy),
        None if held is None else PACKAGE in held.split(),
    )


def _read_dnf(run: Run) -> Package | None:
    latest = _output(
        run, "dnf", "--quiet", "--cacheonly", "repoquery", "--latest-limit=1",
        "--queryformat=%{version}-%{release}\n", PACKAGE,
    )  # fmt: skip
    if latest is None:
        return None
    installed = _output(run, "rpm", "-q", "--queryformat=%{version}-%{release}\n", PACKAGE)
    locks = _output(run, "dnf", "--quiet", "--cacheonly", "versionlock", "list")
    return Package(
        "dnf", _version_in(installed or ""), _version_in(latest),
        None if locks is None else PACKAGE in locks,
    )  # fmt: skip


def _read_winget(run: Run) -> Package | None:
    table = _output(run, "winget", "list", "--id", WINGET_ID, "--disable-interactivity")
    if table is None:
        return None
    # The columns are Name, Id, Version, Available, Source; Available is empty without an upgrade.
    row = next((line for line in table.splitlines() if WINGET_ID in line.split()), "")
    versions = [word for word in row.partition(WINGET_ID)[2].split() if _VERSION.fullmatch(word)]
    installed = versions[0] if versions else None
    return Package("winget", installed, versions[1] if len(versions) > 1 else installed)


def _output(run: Run, *words: str) -> str | None:
    """Return what a program prints; None if it is missing, fails or takes too long."""
    try:
        result = run(*words, timeout_s=COMMAND_TIMEOUT_S)
    except ServiceManagerError:
        return None
    return result.stdout if result.returncode == 0 else None


def _version_after(word: str, text: str) -> str | None:
    for line in map(str.strip, text.splitlines()):
        if line.startswith(word):
            return _version_in(line.removeprefix(word))
    return None


def _version_in(text: str) -> str | None:
    """Return the version at the beginning of a text; None if there is none, as in ``(none)``."""
    match = _VERSION.match(text.strip())
    return match[0] if match else None
