"""A collector that uses too much memory: `python -m tests.fakes.collectors.hungry KIND`.

It begins like a real collector, sends its first facts, and then tries to allocate 1 GiB, twice
its memory limit.
"""

import sys

from collectors.__main__ import ChildRun
from collectors.bounds import MEMORY_MAX_BYTES, limit_this_process
from collectors.contract import Checkpoint, Crash
from tests.fakes.collectors.quick import facts_of

if __name__ == "__main__":
    sys.stdin.readline()
    limit_this_process()
    run = ChildRun(sys.stdout.buffer)
    run.emit(Checkpoint(facts_of(sys.argv[1])))
    blocks = []
    try:
        while len(blocks) * 2**20 < 2 * MEMORY_MAX_BYTES:
            blocks.append(bytearray(2**20))
    except MemoryError as error:
        size = len(blocks)
        blocks.clear()
        run.emit(Crash(f"{type(error).__name__} after {size} MiB"))
        sys.exit(1)
