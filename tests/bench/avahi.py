"""Runs avahi-browse as a contestant of the network benchmark. avahi-browse discovers only announced
services.

It runs in a mount namespace with its own D-Bus and its own avahi-daemon. The measurement starts
when both of them run, because both already run on a machine of a venue.
"""

import subprocess
import tempfile
from pathlib import Path

from tests.bench.contestants import Outcome
from tests.lab.tap.plan import LabPlan

_CONF = """[server]
use-ipv4=yes
use-ipv6=yes
[publish]
disable-publishing=yes
"""
_SCRIPT = """
mount -t tmpfs t /run
mkdir -p /run/dbus /run/avahi-daemon
chown avahi:avahi /run/avahi-daemon
dbus-daemon --system --nofork --nopidfile & bus=$!
until [ -S /run/dbus/system_bus_socket ]; do sleep 0.02; done
avahi-daemon --no-chroot --no-drop-root --no-rlimits -f "$1" >/dev/null 2>&1 & daemon=$!
until [ -S /run/avahi-daemon/socket ]; do sleep 0.02; done
began=$(date +%s%N)
timeout 30 avahi-browse --all --parsable --terminate --resolve 2>/dev/null
echo "took $(( ($(date +%s%N) - began) / 1000000 ))"
kill $daemon $bus
wait
"""


def run_avahi_browse(plan: LabPlan) -> Outcome:
    """Browse and resolve every service type. A host counts as discovered if avahi-browse resolved
    one of its services.
    """
    with tempfile.TemporaryDirectory(prefix="bench-avahi-") as directory:
        conf = Path(directory) / "avahi.conf"
        conf.write_text(_CONF)
        command = ["unshare", "--mount", "sh", "-c", _SCRIPT, "sh", str(conf)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    *lines, last = result.stdout.strip().splitlines()
    endpoints = {endpoint for line in lines if (endpoint := _endpoint(line)) is not None}
    return Outcome(
        int(last.removeprefix("took ")) / 1000,
        {address: "" for address, _ in endpoints},
        frozenset(endpoints),
    )


def _endpoint(line: str) -> tuple[str, int] | None:
    """Read ``=;eth0;IPv4;name;type;domain;host;address;port;txt`` (avahi-browse(1))."""
    words = line.split(";")
    is_resolved = len(words) > 8 and words[0] == "=" and words[2] == "IPv4"
    return (words[7], int(words[8])) if is_resolved and words[8].isdecimal() else None
