"""Browses mDNS on one interface and prints the result as JSON.

The tests run this script in a network namespace. It prints ``ready``, and starts to browse when it
reads a line from stdin.

Usage: browse.py INTERFACE ADDRESS/PREFIX MAX_SERVICES [DEADLINE_S]
"""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from collectors.contract import Facts, Interface, InterfaceAddress, NetworkJob
from collectors.network.mdns.browse import browse
from collectors.network.mdns.session import QuerySchedule

SETTLE_S = 1.8
"""The browse ends if no new record arrives for this time. This time is shorter than the interval
between two rounds of queries (``round_interval_s``)."""
RESOLVE_AFTER_S = (0.0, 0.4, 1.2, 3.0, 6.0)
"""When queries for a missing record are sent, in seconds after the first query. The agent's own
schedule ends earlier. This schedule is longer, because answers arrive late on a busy machine."""


class _Run:
    """A run that is never cancelled and reports no progress."""

    cancelled = False

    def progress(self, step: str, done: int, total: int | None = None) -> None: ...

    def checkpoint(self, facts: Facts) -> None: ...

    def on_cancel(self, wake: object) -> None: ...


def main() -> None:
    name, (address, _, prefix), limit = sys.argv[1], sys.argv[2].partition("/"), int(sys.argv[3])
    deadline_s = float(sys.argv[4]) if len(sys.argv) > 4 else 10.0
    interface = Interface(
        name,
        (
            InterfaceAddress(address, "ipv4", int(prefix)),
            InterfaceAddress("fe80::1", "ipv6", 64),
        ),
    )
    print("ready", flush=True)
    sys.stdin.readline()
    start_s, cpu_start_s = time.monotonic(), time.process_time()
    discoveries = browse(
        [interface],
        NetworkJob(max_services=limit),
        start_s + deadline_s,
        _Run(),
        schedule=QuerySchedule(
            settle_s=SETTLE_S, crowded_s=deadline_s, resolve_after_s=RESOLVE_AFTER_S
        ),
    )
    figures = {
        "seconds": round(time.monotonic() - start_s, 3),
        "cpu_seconds": round(time.process_time() - cpu_start_s, 3),
        "rss_mib": peak_rss_mib(),
    }
    print(json.dumps({**asdict(discoveries), **figures}))


def peak_rss_mib() -> int:
    """Return the peak memory of this program in MiB.

    It is read from /proc, because ru_maxrss would include the memory of the process that forked it.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
