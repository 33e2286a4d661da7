"""`make affected`: run the tests that uncommitted changes can affect.

A change affects a test if the test's module imports a changed module, directly or through other
modules, or starts a program that imports one. A changed file that is not Python affects the modules
that read the file.

    make affected                                 small tests, uncommitted changes
    make affected ARGS="--size medium"            scenario tests too, which start the whole program
    make affected ARGS="--since HEAD~3 -k retry"  changes since a commit; pytest receives `-k retry`
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import grimp

from tests.paths import ROOT

PACKAGES: Final = ("agent", "collectors", "controlplane", "tests")
CACHE: Final = ROOT / "build/grimp"
SMALL: Final = ("tests/unit/", "tests/contract/")
SERIAL_MAX: Final = 8
"""With at most this many test files, starting pytest's workers takes more time than they save."""
PARALLEL: Final = ("-n", "logical", "--maxprocesses=8", "--dist=loadfile", "--no-loadscope-reorder")
NO_TESTS_COLLECTED: Final = 5
"""The exit code of pytest if it has collected no test."""
FILES_NAMED: Final = 3
"""Maximum number of changed files that the printed line names. The other files are only counted."""

STARTED: Final[Mapping[str, tuple[str, ...]]] = {
    "agent": ("agent.__main__", "collectors.__main__"),
    "collectors": ("collectors.__main__",),
    "controlplane": ("controlplane.__main__",),
}
"""The modules that a test uses if it starts a program with ``python -m``. The agent itself starts
the collectors.
"""

IMPORTED_BY_NAME: Final[Mapping[str, str]] = {
    "agent.cli.main": "agent.cli",
    "controlplane.cli.main": "controlplane.cli",
    "controlplane.storage.migrations.upgrade": "controlplane.storage.migrations",
}
"""Each key is a module that computes the names of all modules of a package and imports them. The
value is that package.
"""

UNUSED_IMPORTS: Final = (
    ("tests.conftest", ("agent.redaction.known",)),  # only for the cleanup after each test
    # only to check which programs and kernel features this machine has
    ("tests.prerequisites", ("tests.fakes", "tests.lab", "tests.scenario")),
)
"""Imports that every test executes, but whose modules do not affect the result of any test."""

READERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("*.py", ("tests.unit.test_architecture", "tests.unit.test_imports")),
    ("agent/*.py", ("tests.unit.agent.cli.test_documents", "tests.unit.agent.logs.test_logging")),
    ("agent/presentation/page/templates/*", ("agent.presentation.page.html",)),
    (
        "controlplane/console/*",
        (
            "tests.unit.controlplane.web.test_console",
            "tests.unit.controlplane.accounts.oauth.test_consent",
            "tests.fakes.console.page",
        ),
    ),
    ("*.md", ("tests.unit.test_architecture", "tests.unit.agent.cli.test_documents")),
    ("packaging/*", ("tests.packaging.scripts", "tests.packaging.test_package_parts")),
    ("tests/fixtures/application/*", ("tests.unit.collectors.application.fixtures",)),
    ("tests/fixtures/golden/*", ("tests.contract.golden",)),
    ("tests/fixtures/healthy/*", ("tests.fixtures.healthy",)),
    ("tests/fixtures/databases/*", ("tests.unit.controlplane.storage.test_migrations",)),
)
"""Patterns of files, and the modules that read these files without importing them. ``*`` also
matches ``/``. Tests that contain the name of a file in a string need no entry. Other modules that
contain the name in a string need no entry if they are in the folder of the file."""

EVERYTHING: Final = ("pyproject.toml", "requirements/development.txt")
"""Files that can change the result of any test."""

PROGRAM: Final = re.compile(r'"-m",\s*"([\w.]+)"')
IMPORT: Final = re.compile(
    r"^[ \t]*(?:from|import) ((?:agent|collectors|controlplane|tests)[\w.]*)", re.MULTILINE
)

Importers = Callable[[str], Collection[str]]
"""A function that returns the modules that import a module, directly or through other modules."""


def module_of(path: str) -> str | None:
    """Return the dotted name of a Python file of the project, None for any other file."""
    parts = PurePosixPath(path).with_suffix("").parts
    if not path.endswith(".py") or parts[0] not in PACKAGES:
        return None
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def hidden_imports(module: str, text: str, modules: Collection[str]) -> Iterator[str]:
    """Yield the modules that a module uses although its import statements do not name them.

    The module imports them by computed names, starts them as programs, or imports them in source
    code that it passes to an interpreter.
    """
    if package := IMPORTED_BY_NAME.get(module):
        yield from (name for name in modules if name.startswith(f"{package}."))
    if not module.startswith("tests."):
        return
    for name in PROGRAM.findall(text):
        main = f"{name}.__main__"
        yield from STARTED.get(name, (main if main in modules else name,))
    if module.startswith(("tests.scenario.demo.", "tests.scenario.pictures.")):
        yield from STARTED["agent"]  # through `venue-control demo`
    yield from IMPORT.findall(text)


def readers_of(path: str, texts: Mapping[str, str]) -> set[str]:
    """Return the modules that read a file. ``texts`` maps each module to its source code."""
    readers = {
        module for pattern, modules in READERS if fnmatch.fnmatch(path, pattern)
        for module in modules
    }  # fmt: skip
    if not path.endswith(".py"):
        named = re.compile(rf"[\"'/]{re.escape(PurePosixPath(path).name)}[\"']")
        prefixes = (f"{'.'.join(PurePosixPath(path).parent.parts)}.", "tests.")
        readers |= {
            name for name in texts if name.startswith(prefixes) and named.search(texts[name])
        }
    return readers


def affected_modules(
    changed: Iterable[str], texts: Mapping[str, str], importers: Importers
) -> set[str] | None:
    """Return the modules that changed files can affect; None if they may affect every module.

    ``texts`` maps each existing module to its source code.
    """
    affected: set[str] = set()
    for path in changed:
        module = module_of(path)
        if path in EVERYTHING or (module is not None and module not in texts):
            return None  # importers of a deleted module are unknown
        own_modules = {module} if module is not None else set()
        if path.endswith("/__init__.py"):
            # Python executes this file before it imports any module of the package.
            own_modules |= {name for name in texts if name.startswith(f"{module}.")}
        for each in own_modules | (readers_of(path, texts) & texts.keys()):
            affected |= {each, *importers(each)}
    return affected


def select_tests(affected: Collection[str], all_tests: Iterable[str]) -> list[str]:
    """Return the test files among the affected modules. An affected conftest selects all test files
    of its folder.
    """
    folders = {
        module.removesuffix("conftest") for module in affected if module.endswith(".conftest")
    }
    return [
        path
        for path in sorted(all_tests)
        if (module := module_of(path)) in affected
        or any(module is not None and module.startswith(folder) for folder in folders)
    ]


def files_with_tests(files: Iterable[Path], size: str) -> list[str]:
    """Return the files that contain tests; for size small, only unit and contract tests."""
    paths = [file.as_posix() for file in files if file.name.startswith("test_")]
    return [path for path in paths if path.startswith(SMALL if size == "small" else "tests/")]


def describe_selection(chosen: int, total: int, changed: list[str]) -> str:
    """Return one line with the number of selected test files and the changed files."""
    more = len(changed) - FILES_NAMED
    reason = ", ".join(changed[:FILES_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{chosen} of {total} test files, because of changes in {reason}"


def _changed_since(revision: str) -> list[str]:
    names = _git("diff", "--name-only", "--no-renames", "-z", revision)
    return sorted({*names, *_git("ls-files", "-z", "--others", "--exclude-standard")})


def _git(*words: str) -> list[str]:
    result = subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(result.stderr.strip())
    return [name for name in result.stdout.split("\0") if name]


def importers_in(texts: Mapping[str, str]) -> Importers:
    graph = grimp.build_graph(*PACKAGES, cache_dir=str(CACHE))
    for module in texts.keys() - graph.modules:
        graph.add_module(module)  # in a folder without __init__.py
    for module, text in texts.items():
        imports = graph.find_modules_directly_imported_by(module)
        for imported in set(hidden_imports(module, text, texts.keys())) - imports:
            if imported in texts and imported != module:
                graph.add_import(importer=module, imported=imported)
    for importer, unused in UNUSED_IMPORTS:
        for imported in graph.find_modules_directly_imported_by(importer):
            if imported.startswith(unused):
                graph.remove_import(importer=importer, imported=imported)
    return graph.find_downstream_modules


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="make affected", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--since", default="HEAD", metavar="REV", help="default: HEAD")
    parser.add_argument("--size", default="small", choices=("small", "medium", "large"))
    return parser.parse_known_args()


def main() -> int:
    options, words = _arguments()
    os.chdir(ROOT)
    files = [path for name in PACKAGES for path in sorted(Path(name).rglob("*.py"))]
    texts = {module: path.read_text() for path in files if (module := module_of(path.as_posix()))}
    all_tests = files_with_tests(files, options.size)
    changed = _changed_since(options.since)
    affected = affected_modules(changed, texts, importers_in(texts))
    chosen = all_tests if affected is None else select_tests(affected, all_tests)
    if not chosen:
        print(f"the changes since {options.since} affect no {options.size} test")
        return 0
    print(describe_selection(len(chosen), len(all_tests), changed), flush=True)
    parallel = PARALLEL if len(chosen) > SERIAL_MAX else ("-n0",)
    command = (sys.executable, "-m", "pytest", f"--size={options.size}", *parallel, *words, *chosen)
    code = subprocess.run(command, check=False).returncode
    # pytest collects no test if all tests of the selected files are larger than --size.
    return 0 if code == NO_TESTS_COLLECTED else code


if __name__ == "__main__":
    sys.exit(main())
