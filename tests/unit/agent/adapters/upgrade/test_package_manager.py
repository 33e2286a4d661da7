"""Tests of reading what apt, dnf and winget report about the agent's package."""

from subprocess import CompletedProcess

import pytest

from agent.adapters.service_manager.contract import ServiceManagerError
from agent.adapters.upgrade.package_manager import Package, read_package

APT = """\
venue-agent:
  Installed: 1.0.0
  Candidate: 1.1.0
  Version table:
     1.1.0 500
        500 https://packages.example.com stable/main amd64 Packages
 *** 1.0.0 100
        100 /var/lib/dpkg/status
"""
NOT_INSTALLED = "venue-agent:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n"
# This output, and that of dnf below, is written from the documentation. Neither program was run.
WINGET = """\
Name        Id                    Version Available Source
-----------------------------------------------------------
Venue agent VenueAgent.VenueAgent 1.0.0   1.1.0     winget
"""


class Programs:
    """Returns the output that was given for the first words of a command line, and runs nothing."""

    def __init__(self, outputs: dict[str, str]) -> None:
        self._outputs = outputs

    def __call__(self, *words: str, timeout_s: float) -> CompletedProcess[str]:
        assert timeout_s <= 10
        line = " ".join(words)
        for beginning, output in self._outputs.items():
            if line.startswith(beginning):
                return CompletedProcess(words, 0, output, "")
        raise ServiceManagerError(f"this machine has no {words[0]}")


@pytest.mark.parametrize(
    ("outputs", "package"),
    [
        (
            {"apt-cache policy": APT, "apt-mark showhold": "venue-agent\n"},
            Package("apt", "1.0.0", "1.1.0", is_held=True),
        ),
        (
            {"apt-cache policy": NOT_INSTALLED, "apt-mark showhold": ""},
            Package("apt", None, None, is_held=False),
        ),
        ({"apt-cache policy": ""}, Package("apt")),
        (
            {"dnf --quiet --cacheonly repoquery": "1.1.0-1\n", "rpm -q": "1.0.0-1\n"},
            Package("dnf", "1.0.0-1", "1.1.0-1"),
        ),
        ({"winget list": WINGET}, Package("winget", "1.0.0", "1.1.0")),
        (
            {"winget list": WINGET.replace("1.1.0    ", "         ")},
            Package("winget", "1.0.0", "1.0.0"),
        ),
        ({}, None),
    ],
    ids=["apt-held", "apt-none", "apt-empty", "dnf", "winget", "winget-newest", "no-manager"],
)
def test_read_package_returns_the_versions_and_hold_of_each_manager(
    outputs: dict[str, str], package: Package | None
) -> None:
    assert read_package(Programs(outputs)) == package
