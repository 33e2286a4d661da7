"""Giving memory back: in a process of its own, since it cannot be taken back."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.adapters import memory

PROGRAM = """
import asyncio, ssl, sqlite3, sys
from agent.adapters import memory

def kibibytes(field):
    with open("/proc/self/smaps_rollup") as book:
        return next(int(line.split()[1]) for line in book if line.startswith(field))

rubbish = [bytearray(1000) for _ in range(8000)]
kept = rubbish[::500]
del rubbish
before = {field: kibibytes(field) for field in ("Rss:", "Anonymous:")}
memory.settle()
after = {field: kibibytes(field) for field in ("Rss:", "Anonymous:")}
# What was let go of must still work.
ssl.create_default_context()
sqlite3.connect(":memory:").execute("select 1").fetchall()
asyncio.run(asyncio.sleep(0))
memory.settle()
print(before["Anonymous:"] - after["Anonymous:"])
print(before["Rss:"] - after["Rss:"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_given_back_and_the_program_goes_on() -> None:
    words = (sys.executable, "-c", PROGRAM)
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    heap_kib, resident_kib = map(int, done.stdout.split())
    assert heap_kib > 4000, "free memory inside the heap stays"
    assert resident_kib > heap_kib + 1000, "code that only the start ran stays mapped"


def test_only_code_of_files_is_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    maps = tmp_path / "maps"
    maps.write_text(
        "7f00-7f10 r--p 00000000 fe:00 12 /usr/lib/libssl.so.3\n"
        "7f10-7f20 r-xp 00010000 fe:00 12 /usr/lib/libssl.so.3\n"
        "7f20-7f30 rw-p 00020000 fe:00 12 /usr/lib/libssl.so.3\n"
        "7f30-7f40 r-xp 00000000 00:00 0 \n"
        "7f40-7f50 r-xp 00000000 00:00 0 [vdso]\n"
        "7f50-7f60 r-xp 00000000 fe:00 12 /usr/lib/with a space.so\n"
    )
    monkeypatch.setattr(memory, "MAPS", maps)
    assert list(memory._code()) == [(0x7F10, 0x7F20), (0x7F50, 0x7F60)]
    monkeypatch.setattr(memory, "MAPS", maps / "none")
    assert list(memory._code()) == []
