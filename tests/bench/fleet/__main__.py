"""Measures the reference service under the load of a fleet. The service and the load generator
share the processors of this machine.

    python -m tests.bench.fleet [KIND ...]
        [--database sqlite postgresql]
        [--heartbeats N] [--devices N ...] [--streams N] [--requests N]

    heartbeats  heartbeats per second, and the cost of one
    streams     the cost of open streams
    requests    the time until a request reaches its device
    fair        calls of one organization while another sends as much as it can

The other kinds are heartbeats of one organization during an attack:

    dashboards     another organization requests dashboards
    reports        another organization submits reports
    sign-ins       strangers sign in with wrong passwords; a user signs in too
    registrations  strangers register OAuth clients

All measurements use plain HTTP on loopback. For PostgreSQL, this program starts a temporary server
with the programs of the Linux distribution's PostgreSQL package.
"""

import argparse
import resource
import sys

from tests.bench.fleet.attacks.attack_measurements import (
    measure_during_dashboards,
    measure_during_registrations,
    measure_during_reports,
)
from tests.bench.fleet.attacks.sign_in_measurement import measure_during_sign_ins
from tests.bench.fleet.fair import measure_beside_busy_organization
from tests.bench.fleet.heartbeats import measure_heartbeats
from tests.bench.fleet.streams import measure_idle_streams, measure_requests

DATABASES = ("sqlite", "postgresql")
KINDS = (
    "heartbeats", "streams", "requests", "fair", "dashboards", "reports", "sign-ins",
    "registrations",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the service under a fleet.")
    parser.add_argument("kinds", metavar="kind", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--database", nargs="+", choices=DATABASES, default=list(DATABASES))
    parser.add_argument(
        "--devices", nargs="+", type=int, default=[100, 50_000], help="fleet sizes for heartbeats"
    )
    parser.add_argument("--heartbeats", type=int, default=20_000, help="number for each fleet size")
    parser.add_argument("--streams", type=int, default=10_000, help="number of open streams")
    parser.add_argument("--requests", type=int, default=500, help="requests on each database")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    databases: list[str] = options.database
    benchmarks = {
        "heartbeats": lambda: measure_heartbeats(databases, options.devices, options.heartbeats),
        "streams": lambda: measure_idle_streams(databases, options.streams),
        "requests": lambda: measure_requests(databases, options.streams, options.requests),
        "fair": lambda: measure_beside_busy_organization(databases),
        "dashboards": lambda: measure_during_dashboards(databases),
        "reports": lambda: measure_during_reports(databases),
        "sign-ins": lambda: measure_during_sign_ins(databases),
        "registrations": lambda: measure_during_registrations(databases),
    }
    for kind in options.kinds:
        for line in benchmarks[kind]():
            sys.stdout.write(f"{kind:<15}{line}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
