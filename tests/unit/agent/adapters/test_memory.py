"""Tests that `memory.release_memory` returns memory to the system.

It permanently changes the settings of its process, so the test calls it in a separate process.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.adapters import memory

PROGRAM = """
import asyncio, ssl, sqlite3, sys
from agent.adapters import memory
from agent.config.model import Config
from agent.wire.codec import validate
from agent.wire.validation import ValidationError

def issues_of_an_invalid_configuration():
    try:
        validate({"service": {"base_url": "x", "nonsense": 1}, "heartbeat": 3}, Config)
    except ValidationError as error:
        return error.issues

issues = issues_of_an_invalid_configuration()

def kibibytes(field):
    with open("/proc/self/smaps_rollup") as smaps:
        return next(int(line.split()[1]) for line in smaps if line.startswith(field))

blocks = [bytearray(1000) for _ in range(8000)]
kept = blocks[::500]  # blocks in use keep the heap from shrinking by itself
del blocks
before = {field: kibibytes(field) for field in ("Rss:", "Anonymous:")}
memory.release_memory()
after = {field: kibibytes(field) for field in ("Rss:", "Anonymous:")}
# Code on released pages must still work.
ssl.create_default_context()
sqlite3.connect(":memory:").execute("select 1").fetchall()
asyncio.run(asyncio.sleep(0))
assert len(issues) >= 4 and issues_of_an_invalid_configuration() == issues
memory.release_memory()
print(before["Anonymous:"] - after["Anonymous:"])
print(before["Rss:"] - after["Rss:"])
"""


@pytest.mark.medium
@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc, which only Linux has")
def test_memory_is_released_and_the_program_continues() -> None:
    words = (sys.executable, "-c", PROGRAM)
    result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    heap_kib, resident_kib = map(int, result.stdout.split())
    assert heap_kib > 4000, "free memory inside the heap must be returned"
    assert resident_kib > heap_kib + 1000, "file pages used only at the start must be released"


def mapping(line: str, changed_kib: int = 0) -> str:
    """Return an entry of /proc/PID/smaps with only some of its fields."""
    fields = f"Size: 64 kB\nRss: 64 kB\nAnonymous: {changed_kib:6} kB\nSwap: 0 kB"
    return f"{line}\n{fields}\nVmFlags: rd mr mw me\n"


def test_only_unchanged_file_pages_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mappings = tmp_path / "smaps"
    mappings.write_text(
        mapping("7f00-7f10 r--p 00000000 fe:00 12 /usr/lib/libssl.so.3")
        + mapping("7f10-7f20 r-xp 00010000 fe:00 12 /usr/lib/libssl.so.3")
        # The dynamic linker changed these pages before it made them read-only. Their content is in
        # no file, so they must not be released.
        + mapping("7f20-7f28 r--p 00020000 fe:00 12 /usr/lib/libssl.so.3", changed_kib=32)
        + mapping("7f28-7f30 rw-p 00028000 fe:00 12 /usr/lib/libssl.so.3")
        + mapping("7f30-7f40 r-xp 00000000 00:00 0 ")
        + mapping("7f40-7f50 r-xp 00000000 00:00 0 [vdso]")
        + mapping("7f50-7f60 r-xp 00000000 fe:00 12 /usr/lib/with a space.so")
        + mapping("7f60-7f70 r--s 00000000 fe:00 13 /var/lib/agent.db-shm")
    )
    monkeypatch.setattr(memory, "MAPPINGS", mappings)
    assert list(memory._unchanged_mappings()) == [
        (0x7F00, 0x7F10),
        (0x7F10, 0x7F20),
        (0x7F50, 0x7F60),
    ]
    monkeypatch.setattr(memory, "MAPPINGS", mappings / "none")
    assert list(memory._unchanged_mappings()) == []
