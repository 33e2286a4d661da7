"""Measures the reference service under the load of a fleet. The service and the load generator
share the processors of this machine.

    python -m tests.bench.fleet [heartbeats streams requests fair figures sign-ins]
        [--database sqlite postgresql]
        [--heartbeats N] [--devices N ...] [--streams N] [--requests N]

    heartbeats  heartbeats per second, and the cost of one
    streams     the cost of open streams
    requests    the time until a request reaches its device
    fair        calls of one organization while another sends as much as it can
    figures     heartbeats of one organization while another requests dashboards
    sign-ins    heartbeats, and the sign-ins of a user, while strangers send wrong passwords

It uses plain HTTP on loopback. For PostgreSQL it starts a temporary server with the programs of the
Linux distribution's PostgreSQL package.
"""

import argparse
import resource
import sys

from tests.bench.fleet.attacks.figures import beside_figures
from tests.bench.fleet.attacks.sign_ins import beside_sign_ins
from tests.bench.fleet.fair import latency_during_attack
from tests.bench.fleet.heartbeats import heartbeats
from tests.bench.fleet.streams import idle_streams, requests_at_devices

DATABASES = ("sqlite", "postgresql")
KINDS = ("heartbeats", "streams", "requests", "fair", "figures", "sign-ins")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the service under a fleet.")
    parser.add_argument("what", nargs="*", choices=KINDS, default=list(KINDS))
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
    lines = {
        "heartbeats": lambda: heartbeats(options.database, options.devices, options.heartbeats),
        "streams": lambda: idle_streams(options.database, options.streams),
        "requests": lambda: requests_at_devices(
            options.database, options.streams, options.requests
        ),
    }
    lines["fair"] = lambda: latency_during_attack(options.database)
    lines["figures"] = lambda: beside_figures(options.database)
    lines["sign-ins"] = lambda: beside_sign_ins(options.database)
    for what in options.what:
        for line in lines[what]():
            sys.stdout.write(f"{what:<11}{line}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
