"""Measures how much processor time the reference service needs to refuse an invalid request body
that reaches the limit for its bytes, its lists and objects, or its items. The bodies have the
shapes that are the most expensive to parse. Only the parsing is measured; each figure is the median
of several runs.

Usage: python -m tests.bench.bodies [--runs N]
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice, product, repeat
from string import ascii_letters

from agent.wire.codec import to_plain
from controlplane.operation.bodies import CONTAINERS_MAX, ITEMS_MAX
from controlplane.operation.errors import Refusal
from controlplane.remote_control.submission import parse_submission
from controlplane.server import set_up_garbage_collection
from controlplane.settings import Settings
from tests.fixtures import payloads

ID = "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"
GOAL_MS = 100
LIMIT = Settings().body_limit_bytes
ROOM = LIMIT - 40_000
"""Bytes of a body that its expensive part may fill. The other bytes are for a small report."""
CONTAINERS = CONTAINERS_MAX - 200
ITEMS = ITEMS_MAX - 500
"""Maximum numbers of containers (lists and objects) and of items in the expensive part of a body.
The service counts one item for each comma. Its limits are higher, because the small report needs
the difference: it has 117 containers and 321 commas."""
HAN = [chr(code) for code in range(0x4E00, 0x9FA6)]
"""Characters of three bytes in UTF-8. Text of such characters costs more to decode than ASCII."""
LIST_PATHS = (
    ("endpoints",), ("printers",), ("failures",), ("limitations",), ("networkMap", "hosts"),
    ("networkMap", "interfaces"), ("networkMap", "limitations"), ("networkMap", "bounds", "ports"),
    ("environment", "nativeCapabilities"),
)  # fmt: skip
"""Paths of lists in a report. Many bodies have a long list at one of these paths."""
UNBOUNDED_LISTS = {
    ("networkMap", "bounds", "ports"): "1",
    ("networkMap", "limitations"): '"\u4e00"',
    ("networkMap", "interfaces"): '{"name":"","addresses":[],"gateways":[]}',
    ("networkMap", "hosts"): '{"address":"","services":[],"reachability":"unknown","sources":[]}',
}
"""Lists that have no maximum length in the contract, each with a valid element in JSON."""
LIST_ITEMS = 60_000
"""Number of items of the long list in the body "keys, lists and texts" (`objects`)."""
ELEMENTS = ("{}", "[]", "null", "1", '"x"', '{"a":1}')


def fill(*parts: Iterable[str], room: int = ROOM) -> str:
    """Join elements or members of ``parts`` with commas, as many as fit in ``room`` bytes."""
    included = []
    for part in chain(*parts):
        room -= len(part.encode()) + 1
        if room < 0:
            break
        included.append(part)
    return ",".join(included)


def most_of(element: str) -> Iterator[str]:
    """Yield ``element`` as often as the service's limits for containers and items permit."""
    containers = element.count("{") + element.count("[") or 1
    return repeat(element, min(CONTAINERS // containers, ITEMS // (element.count(",") + 1)))


def names(*alphabets: Iterable[str]) -> Iterator[str]:
    """Yield distinct texts: one character of each alphabet, in all combinations."""
    return map("".join, product(*alphabets))


def members(*alphabets: Iterable[str], value: str = "1") -> Iterator[str]:
    return (f'"{name}":{value}' for name in names(*alphabets))


def submission(report: str) -> bytes:
    head = (
        f'{{"bindingId":"{ID}","reportId":"{ID}","kind":"network","outcome":"completed","report":'
    )
    return (head + report + "}").encode()


def bodies() -> Iterator[tuple[str, bytes]]:
    """Yield bodies that reach a limit of the service, each with the name of its shape."""
    for path in LIST_PATHS:
        for element in ELEMENTS:
            yield f"{'.'.join(path)} of {element}", submission(full_report(path, element))
    for path, element in UNBOUNDED_LISTS.items():
        report = full_report(path, element)
        # Fill the body up to its limit, so that the error is found late.
        more = fill(repeat('"\u4e00"', ITEMS - report.count(",")))
        report = report.replace('"limitations": []', f'"limitations": [{more}]', 1)
        wrong, twice = (f'"truncated": {end}' for end in ("1", 'true, "truncated": true'))
        name = f"{'.'.join(path)} of {element}"
        yield f"{name}, and a mistake", submission(report.replace('"truncated": false', wrong))
        yield f"{name}, and a key twice", submission(report.replace('"truncated": false', twice))
    for name, elements in lists().items():
        yield f"a list of {name}", submission(f"[{fill(*elements)}]")
    for name, parts in objects().items():
        yield f"an object of {name}", submission(f"{{{fill(*parts)}}}")
    for name, report in scalars().items():
        yield name, submission(report)
    yield (
        "keys next to the report",
        submission(f"1,{fill(islice(members(HAN, ascii_letters), ITEMS))}"),
    )
    yield "deeply nested arrays", submission("[" * CONTAINERS + "]" * CONTAINERS)
    yield "an array that is not closed", submission(f"[{fill(most_of('{}'))}")[:-2]
    yield "no JSON", b"x" * ROOM
    yield "no UTF-8", submission('"x"').replace(b"x", b"\xff" * ROOM)


def full_report(path: tuple[str, ...], element: str) -> str:
    """Return a report that is valid except for ``path``, where it has a list of ``element``."""
    document = to_plain(payloads.small_venue())
    document["networkMap"]["limitations"] = []
    parent = document
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = "@"
    return json.dumps(document).replace('"@"', f"[{fill(most_of(element))}]")


def lists() -> dict[str, tuple[Iterable[str], ...]]:
    names_as_json = [f'"{name}"' for name in names(HAN, ascii_letters[:10])]
    return {
        "too many {}": (repeat("{}"),),
        "too many numbers": (repeat("1"),),
        "{} and numbers": (most_of("{}"), repeat("1", ITEMS - CONTAINERS)),
        "objects with one key, each different": (
            islice((f"{{{member}}}" for member in members(HAN, ascii_letters)), CONTAINERS),
            islice(names_as_json, ITEMS - CONTAINERS),
        ),
        "texts that differ": (islice(names_as_json, ITEMS),),
        "texts that are escaped": (most_of('"\\n"'),),
        "floats": (most_of("1e9"),),
        "long floats": (most_of("1.234567e-89"),),
        "integers that differ": (map(str, range(10**6, 10**6 + ITEMS)),),
        "integers of 4,000 digits": (repeat("7" * 4000),),
        "empty texts": (most_of('""'),),
    }


def objects() -> dict[str, tuple[Iterable[str], ...]]:
    full = (HAN, ascii_letters, ascii_letters)
    texts = (f'"{name}"' for name in names(HAN, ascii_letters))
    return {
        "too many keys": (members(*full),),
        "keys of three letters": (islice(members(*[ascii_letters] * 3), ITEMS),),
        "keys of four letters": (islice(members(*[ascii_letters] * 4), ITEMS),),
        "keys of twenty letters": (members(["x" * 16], *[ascii_letters] * 4),),
        "keys that are escaped": (members(["\\n"], *[ascii_letters] * 3),),
        "one key": (most_of('"a":1'),),
        "keys of two alphabets": (islice(members(*full), ITEMS),),
        "keys and texts": (islice(members(*full, value='"yz"'), ITEMS),),
        "keys and floats": (islice(members(*full, value="1e9"), ITEMS),),
        "keys and lists": (
            islice(members(*full, value="[]"), CONTAINERS),
            islice(members(["z"], *full), ITEMS - CONTAINERS),
        ),
        "keys and objects": (
            islice(members(*full, value="{}"), CONTAINERS),
            islice(members(["z"], *full), ITEMS - CONTAINERS),
        ),
        "keys, lists and texts": (
            islice(members(*full, value="[[]]"), CONTAINERS // 2),
            (f'"z":[{fill(islice(texts, LIST_ITEMS))}]',),
            islice(members(["z"], *full), ITEMS - CONTAINERS // 2 - LIST_ITEMS - 1),
        ),
    }


def scalars() -> dict[str, str]:
    return {
        "one text": f'"{"x" * ROOM}"',
        "one text of colons": f'"{":" * ROOM}"',
        "one text of escapes": '"' + "\\u0041" * (ROOM // 6) + '"',
        "one text of halves of surrogate pairs": '"' + "\\ud83d" * (ROOM // 6) + '"',
        "one integer": "1" * ROOM,
        "one float": "0." + "1" * ROOM,
        "spaces": " " * ROOM + "1",
    }


def is_refused(body: bytes) -> bool:
    """Return whether the service refused the body."""
    try:
        parse_submission(body)
    except Refusal:
        return True
    return False


def cost_ms(body: bytes, runs: int) -> float:
    costs = []
    for _ in range(runs):
        began = time.process_time()
        is_refused(body)
        costs.append((time.process_time() - began) * 1000)
    return statistics.median(costs)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how fast invalid bodies are refused.")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    set_up_garbage_collection()
    costs = sorted(
        ((cost_ms(body, options.runs), name, is_refused(body)) for name, body in bodies()),
        reverse=True,
    )
    for ms, name, was_refused in costs:
        sys.stdout.write(f"{ms:8.1f} ms  {'refused' if was_refused else 'ACCEPTED'}  {name}\n")
    refused = [ms for ms, _, was_refused in costs if was_refused]
    sys.stdout.write(
        f"{len(refused)} shapes refused, the slowest in {refused[0]:.0f} ms (goal {GOAL_MS})\n"
    )
    return 0 if refused[0] <= GOAL_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
