"""Writes what OSS-Fuzz needs for each fuzz target: a program, and an archive of its seeds.

Usage: python -m tests.fuzz.ossfuzz.fuzzers PROGRAMS OUT
Source: https://google.github.io/oss-fuzz/getting-started/new-project-guide/python-lang/
"""

import sys
import zipfile
from pathlib import Path

from tests.fuzz.targets import TARGETS

PROGRAM = '''\
"""Fuzzes one parser."""

import sys

import atheris

with atheris.instrument_imports(include=["agent", "collectors"]):
    from tests.fuzz.targets import TARGETS

TARGET = TARGETS[{name!r}]


def one_input(data: bytes) -> None:
    try:
        TARGET.parse(data)
    except TARGET.errors:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
'''


def write(programs: Path, out: Path) -> None:
    """Write fuzz_NAME.py in ``programs``, and fuzz_NAME_seed_corpus.zip in ``out``."""
    programs.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    for name, target in TARGETS.items():
        stem = f"fuzz_{name.replace('-', '_')}"
        (programs / f"{stem}.py").write_text(PROGRAM.format(name=name))
        with zipfile.ZipFile(out / f"{stem}_seed_corpus.zip", "w") as archive:
            for number, seed in enumerate(target.seeds):
                archive.writestr(zipfile.ZipInfo(f"seed-{number}"), seed)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
