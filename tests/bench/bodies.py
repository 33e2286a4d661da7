"""Prints what refusing a body of the permitted size costs the reference service, for shapes that
cost most: processor time of the parsing alone, the median of some runs.

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
from controlplane.http.bodies import CONTAINERS_MAX, NAMES_MAX
from controlplane.http.errors import Refusal
from controlplane.remote_control.submission import parse_submission
from controlplane.settings import Settings
from tests.fixtures import payloads

ID = "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"
BOUND_MS = 100
LIMIT = Settings().body_limit_bytes
ROOM = LIMIT - 40_000
"""Bytes of a body beside a small report."""
CONTAINERS = CONTAINERS_MAX - 100
NAMES = NAMES_MAX - 100
HAN = [chr(code) for code in range(0x4E00, 0x9FA6)]
"""Characters of three bytes: a text of them costs more to read than others."""
REPLACED = (
    ("endpoints",), ("printers",), ("failures",), ("limitations",), ("networkMap", "hosts"),
    ("networkMap", "interfaces"), ("networkMap", "limitations"), ("networkMap", "bounds", "ports"),
    ("environment", "nativeCapabilities"),
)  # fmt: skip
ELEMENTS = ("{}", "[]", "null", "1", '"x"', '{"a":1}')


def fill(*parts: Iterable[str], room: int = ROOM) -> str:
    """Join as many of the elements or members in ``parts`` as there is room for."""
    taken = []
    for part in chain(*parts):
        room -= len(part.encode()) + 1
        if room < 0:
            break
        taken.append(part)
    return ",".join(taken)


def names(*alphabets: Iterable[str]) -> Iterator[str]:
    """Yield texts that all differ."""
    return map("".join, product(*alphabets))


def members(*alphabets: Iterable[str], value: str = "1", colon: str = ":") -> Iterator[str]:
    return (f'"{name}"{colon}{value}' for name in names(*alphabets))


def submission(report: str) -> bytes:
    head = (
        f'{{"bindingId":"{ID}","reportId":"{ID}","kind":"network","outcome":"completed","report":'
    )
    return (head + report + "}").encode()


def bodies() -> Iterator[tuple[str, bytes]]:
    """Yield shapes of the permitted size, each with its name."""
    plain = to_plain(payloads.small_venue())
    for path in REPLACED:
        for element in ELEMENTS:
            document = json.loads(json.dumps(plain))
            place = document
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = "@"
            report = json.dumps(document).replace('"@"', f"[{fill(repeat(element))}]")
            yield f"{'.'.join(path)} of {element}", submission(report)
    for name, elements in lists().items():
        yield f"a list of {name}", submission(f"[{fill(*elements)}]")
    for name, parts in objects().items():
        yield f"an object of {name}", submission(f"{{{fill(*parts)}}}")
    for name, report in scalars().items():
        yield name, submission(report)
    yield "keys beside the report", submission(f"1,{fill(members(HAN, ascii_letters))}")
    yield "deep", submission("[" * (ROOM // 2) + "]" * (ROOM // 2))
    yield "not closed", submission(f"[{fill(repeat('{}'))}")[:-2]
    yield "no JSON", b"x" * ROOM
    yield "no UTF-8", submission('"x"').replace(b"x", b"\xff" * ROOM)


def lists() -> dict[str, tuple[Iterable[str], ...]]:
    texts = [f'"{name}"' for name in names(HAN, ascii_letters[:10])]
    return {
        "{}": (repeat("{}"),),
        "fewer {}, then numbers": (repeat("{}", CONTAINERS), repeat("1")),
        "objects of one key": (repeat('{"a":1}', CONTAINERS), repeat("1")),
        "objects of one key, each another": (
            islice((f"{{{member}}}" for member in members(HAN, ascii_letters)), CONTAINERS),
            repeat("1"),
        ),
        "texts that differ": (texts,),
        "texts that are escaped": (repeat('"\\n"'),),
        "floats": (repeat("1e9"),),
        "integers that differ": (map(str, range(10**6, 2 * 10**6)),),
        "integers of 4,000 digits": (repeat("7" * 4000),),
        "empty texts": (repeat('""'),),
    }


def objects() -> dict[str, tuple[Iterable[str], ...]]:
    full = (HAN, ascii_letters, ascii_letters)
    texts = (f'"{name}"' for name in names(HAN, ascii_letters))
    return {
        "keys of one character": (members(HAN),),
        "keys of three": (members(*[ascii_letters] * 3),),
        "keys of four": (members(*[ascii_letters] * 4),),
        "keys with a space behind": (members(*[ascii_letters] * 4, colon=" :"),),
        "keys of twenty": (members(["x" * 16], *[ascii_letters] * 4),),
        "keys of two alphabets": (members(HAN, ascii_letters),),
        "keys that are escaped": (members(["\\n"], *[ascii_letters] * 3),),
        "one key": (repeat('"a":1'),),
        "as many keys as may be": (islice(members(*full), NAMES),),
        "as many keys and texts as may be": (islice(members(*full, value='"yz"'), NAMES),),
        "as many keys and lists as may be": (
            islice(members(*full, value="[]"), CONTAINERS),
            islice(members(["z"], *full), NAMES - CONTAINERS),
        ),
        "as many keys and objects as may be": (
            islice(members(*full, value="{}"), CONTAINERS),
            islice(members(["z"], *full), NAMES - CONTAINERS),
        ),
        "keys, lists and texts": (
            islice(members(*full, value="[[]]"), CONTAINERS // 2),
            (f'"z":[{fill(islice(texts, 60_000))}]',),
            islice(members(["z"], *full), NAMES - CONTAINERS // 2 - 1),
        ),
    }


def scalars() -> dict[str, str]:
    return {
        "one text": f'"{"x" * ROOM}"',
        "one text of colons": f'"{":" * ROOM}"',
        "one text of escapes": '"' + "\\u0041" * (ROOM // 6) + '"',
        "one text of halves of characters": '"' + "\\ud83d" * (ROOM // 6) + '"',
        "one integer": "1" * ROOM,
        "one float": "0." + "1" * ROOM,
        "spaces": " " * ROOM + "1",
    }


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
    costs = sorted(
        ((cost_ms(body, options.runs), name, parse(body)) for name, body in bodies()), reverse=True
    )
    for ms, name, was_refused in costs:
        sys.stdout.write(f"{ms:8.1f} ms  {'refused' if was_refused else 'TAKEN'}  {name}\n")
    refused = [ms for ms, _, was_refused in costs if was_refused]
    sys.stdout.write(
        f"{len(refused)} shapes refused, the worst in {refused[0]:.0f} ms (goal {BOUND_MS})\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
