"""Sends the calls of a fleet: heartbeats, reports, and requests for reports.

Usage: python -m tests.bench.scale.load PORT FLEET SECONDS HEARTBEATS REPORTS REQUESTS

FLEET is a file with a device in each line: API key, instance id and binding id. The last three
arguments are rates in calls per second. The process prints one JSON object with the statuses and
latencies of each kind of call, and for each created request the time at which its call was due.
"""

import asyncio
import json
import sys
import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from agent.wire.codec import encode
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.load import create_request, heartbeat, submit_report
from tests.bench.scale.paced_calls import PacedCalls, Tally
from tests.fixtures.payloads import small_venue

STEP = 7919
"""A prime number, so that consecutive reports and requests concern devices that are far apart in
the table of devices.
"""


def read_fleet(file: Path) -> list[Member]:
    words = (line.split() for line in file.read_text("ascii").splitlines())
    return [
        Member(uuid.UUID(instance_id), uuid.UUID(binding_id), key, "")
        for key, instance_id, binding_id in words
    ]


async def send(port: int, fleet: list[Member], seconds: float, rates: list[float]) -> Any:
    tallies = {name: Tally() for name in ("heartbeats", "reports", "requests")}
    due_s: dict[str, float] = {}

    def created(number: int, at_s: float, body: bytes) -> None:
        due_s[json.loads(body)["requestId"]] = at_s

    kinds = (
        PacedCalls(port, map(heartbeat, _members(fleet, 1)), tallies["heartbeats"]),
        PacedCalls(port, map(_report, _members(fleet, STEP)), tallies["reports"]),
        PacedCalls(port, map(create_request, _members(fleet, STEP)), tallies["requests"], created),
    )
    await asyncio.gather(
        *(kind.send(rate, seconds) for kind, rate in zip(kinds, rates, strict=True))
    )
    return {
        "due": due_s,
        **{
            name: {
                "statuses": tally.statuses,
                "unanswered": tally.unanswered,
                "latencies": tally.latencies_s,
            }
            for name, tally in tallies.items()
        },
    }


def _members(fleet: list[Member], step: int) -> Iterator[Member]:
    return (fleet[number * step % len(fleet)] for number in count())


_REPORT: dict[str, Any] = json.loads(encode(small_venue()))


def _report(member: Member) -> bytes:
    return submit_report(member, _REPORT)


def main() -> None:
    port, fleet, seconds, *rates = sys.argv[1:]
    sent = send(int(port), read_fleet(Path(fleet)), float(seconds), [float(each) for each in rates])
    sys.stdout.write(json.dumps(asyncio.run(sent)))


if __name__ == "__main__":
    main()
