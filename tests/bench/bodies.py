"""Prints what refusing a body of the permitted size costs the reference service, for shapes that
cost most: processor time of the parsing alone, the median of some runs.

Usage: python -m tests.bench.bodies [--runs N]
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator

from agent.wire.codec import to_plain
from controlplane.http.errors import Refusal
from controlplane.remote_control.submission import parse_submission
from controlplane.settings import Settings
from tests.fixtures import payloads

ID = "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"
BOUND_MS = 100
LIMIT = Settings().body_limit_bytes
REPLACED = (
    ("endpoints",), ("printers",), ("failures",), ("limitations",), ("networkMap", "hosts"),
    ("networkMap", "interfaces"), ("networkMap", "limitations"), ("networkMap", "bounds", "ports"),
    ("environment", "nativeCapabilities"),
)  # fmt: skip
ELEMENTS = ("{}", "[]", "null", "1", '"x"', '{"a":1}')


def fill(element: str, room: int) -> str:
    return ",".join([element] * (room // (len(element) + 1)))


def submission(report: str) -> bytes:
    head = (
        f'{{"bindingId":"{ID}","reportId":"{ID}","kind":"network","outcome":"completed","report":'
    )
    return (head + report + "}").encode()


def bodies() -> Iterator[tuple[str, bytes]]:
    """Yield shapes of the permitted size, each with its name."""
    room = LIMIT - 40_000
    plain = to_plain(payloads.small_venue())
    for path in REPLACED:
        for element in ELEMENTS:
            document = json.loads(json.dumps(plain))
            place = document
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = "@"
            report = json.dumps(document).replace('"@"', f"[{fill(element, room)}]")
            yield f"{'.'.join(path)} of {element}", submission(report)
    yield "unknown keys", submission("{" + ",".join(f'"k{n}":1' for n in range(room // 12)) + "}")
    yield "report of {}", submission(f"[{fill('{}', room)}]")
    yield "deep", submission("[" * (room // 2) + "]" * (room // 2))
    yield "one text", submission('"' + "x" * room + '"')
    yield "not closed", submission(f"[{fill('{}', room)}")[:-2]


def parse(body: bytes) -> bool:
    """Tell whether it was refused."""
    try:
        parse_submission(body)
    except Refusal:
        return True
    return False


def cost_ms(body: bytes, runs: int) -> float:
    taken = []
    for _ in range(runs):
        began = time.process_time()
        parse(body)
        taken.append((time.process_time() - began) * 1000)
    return statistics.median(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the refusal of the worst bodies.")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    costs = sorted(((cost_ms(b, options.runs), n, parse(b)) for n, b in bodies()), reverse=True)
    for ms, name, was_refused in costs:
        sys.stdout.write(f"{ms:8.1f} ms  {'refused' if was_refused else 'TAKEN'}  {name}\n")
    sys.stdout.write(f"{len(costs)} shapes, worst {costs[0][0]:.0f} ms (goal {BOUND_MS})\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
