"""`make seeded-defects`: plant known defects one at a time and report which test detects each.

Each row of `tests/seeded_defects_table.py` is a defect, with a hint that names tests. The defect is
planted in a copy of the checkout, and the tests of the hint run at size medium. If they pass, the
whole suite runs, first at medium, then at large.

    make seeded-defects                          all defects
    make seeded-defects ARGS="7 12 cursor"       by number, kind or a word of the description
    make seeded-defects ARGS="--hints --list"    see --help
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.paths import ROOT
from tests.seeded_defects_table import DEFECTS, Defect

PACKAGES: Final = ("agent", "collectors", "controlplane", "tests")
FIRST_FAILURE: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
WHOLE_SUITE: Final = ("-n", "logical", "--maxprocesses=8", "--dist=loadfile")


class Outcome(NamedTuple):
    """The result of the search for one defect. ``test`` is the first test that failed, and ``size``
    the size at which it ran. ``size`` is None if no test failed. ``was_hinted`` is True if the hint
    of the defect names the test.
    """

    size: str | None
    test: str
    was_hinted: bool = False


class Copy:
    """A copy of the checkout, with a virtual environment that imports the project from the copy."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(0o755)  # tests start programs as other users
        for name in _files_of_checkout():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
        self._python = self._make_environment()
        self._require_own_code()

    def _make_environment(self) -> Path:
        """Create a virtual environment. Return its interpreter, which imports the copy even with
        ``-I``.

        A path file in the environment adds the directory of the packages that are installed for the
        checkout. Python reads no path files in a directory that is added in this way. Therefore the
        path file of the checkout's own editable install, which is in that directory, has no effect.
        """
        folder = self.root / ".venv"
        venv.create(folder, symlinks=True)
        (own_packages,) = folder.glob("lib/python*/site-packages")
        installed = next(path for path in sys.path if path.endswith("site-packages"))
        (own_packages / "copy.pth").write_text(f"{self.root}\n{installed}\n")
        return folder / "bin/python"

    def _require_own_code(self) -> None:
        """Exit if a package of the project is not imported from the copy."""
        code = (
            f"import {', '.join(PACKAGES)}; print(*(m.__file__ for m in ({', '.join(PACKAGES)})))"
        )
        for words in (("-I", "-c"), ("-c",)):
            command = (self._python, *words, code)
            completed = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
            if not all(Path(path).is_relative_to(self.root) for path in completed.stdout.split()):
                sys.exit(f"the copy does not run its own code: {completed.stdout}")

    @contextmanager
    def planted(self, defect: Defect) -> Iterator[None]:
        path = self.root / defect.file
        original = path.read_text()
        if original.count(defect.before) != 1:
            sys.exit(f"{defect.file} does not contain this text exactly once:\n{defect.before}")
        self._write(path, original.replace(defect.before, defect.after))
        try:
            yield
        finally:
            self._write(path, original)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        # Python recognizes an outdated compiled file by the time in seconds and the size of its
        # source file. A defect may leave both unchanged.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def first_failure(self, words: Sequence[str], size: str) -> str | None:
        """Run tests. Return the first one that fails, or None."""
        command = (str(self._python), "-m", "pytest", f"--size={size}", "-x", "--tb=no", *words)
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        completed = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        if not completed.returncode:
            return None
        result = FIRST_FAILURE.search(completed.stdout)
        if result is not None:
            return result[1]
        sys.exit(f"pytest ended with {completed.returncode}:\n{completed.stdout}{completed.stderr}")


def search(copy: Copy, defect: Defect, *, only_hints: bool) -> Outcome:
    """Return which test detects a planted defect. Run the tests of the hint first, because they
    take less time than the whole suite.
    """
    test = first_detecting_test(copy, defect, (*defect.hint.split(), "-n0"), "medium")
    if test is not None:
        return Outcome("medium", test, was_hinted=True)
    for size in () if only_hints else ("medium", "large"):
        test = first_detecting_test(copy, defect, WHOLE_SUITE, size)
        if test is not None:
            return Outcome(size, test)
    return Outcome(None, "")


def first_detecting_test(copy: Copy, defect: Defect, words: Sequence[str], size: str) -> str | None:
    """Return the first test that fails because of the defect, and passes without the defect."""
    failing_anyway: tuple[str, ...] = ()
    while True:
        with copy.planted(defect):
            test = copy.first_failure((*words, *failing_anyway), size)
        if test is None or copy.first_failure((test, "-n0"), size) is None:
            return test
        print(f"     also fails without the defect: {test}", flush=True)
        failing_anyway += ("--deselect", test)


def selected(words: Sequence[str]) -> list[tuple[int, Defect]]:
    """Return the defects, with their numbers, that at least one word selects. Without words, return
    all defects.
    """
    rows = list(enumerate(DEFECTS, 1))
    if not words:
        return rows
    return [
        (number, defect)
        for number, defect in rows
        if any(_selects(word, number, defect) for word in words)
    ]


def _selects(word: str, number: int, defect: Defect) -> bool:
    if word.isdigit():
        return int(word) == number
    return word in f"{defect.kind}: {defect.description}"


def _files_of_checkout() -> list[str]:
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.split("\0") if name and (ROOT / name).exists()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make seeded-defects")
    parser.add_argument("rows", nargs="*", help="numbers, kinds or words; default: all")
    parser.add_argument("--list", action="store_true", help="list the defects and run nothing")
    parser.add_argument("--hints", action="store_true", help="run the tests of the hints only")
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    rows = selected(options.rows)
    if options.list:
        for number, defect in rows:
            print(f"{number:3}  {defect.kind}: {defect.description}  ({defect.file})")
        return 0
    results: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="seeded-defects-") as folder:
        copy = Copy(Path(folder).resolve())
        for number, defect in rows:
            outcome = search(copy, defect, only_hints=options.hints)
            results[outcome.size or "not caught"] += 1
            note = "" if outcome.was_hinted or outcome.size is None else ", not in the hint"
            print(f"{number:3}  {defect.kind}: {defect.description}")
            print(f"     {outcome.size or 'NOT CAUGHT'}{note}  {outcome.test}", flush=True)
    counts = ", ".join(f"{count} {size}" for size, count in results.items())
    print(f"{len(rows)} defects: {counts}")
    return 1 if results["not caught"] else 0


if __name__ == "__main__":
    sys.exit(main())
