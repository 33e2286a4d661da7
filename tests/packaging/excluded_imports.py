"""Prints each import of a module that the packaged program leaves out.

The modules are the ``excludes`` of packaging/program.spec. A line has the form `IMPORTER: MODULE`.

The script blocks imports of the modules that the program leaves out, and then imports every module
of the program except `__main__` modules and the environment of migrations. Libraries also import
inside functions. Therefore the script also tries the imports in the source code of every loaded
library module, except imports inside a `try`.

Usage: python -m tests.packaging.excluded_imports venue-agent|venue-control
"""

import ast
import importlib
import importlib.abc
import importlib.util
import os
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

from tests.paths import ROOT

SPEC: Final = ROOT / "packaging/program.spec"
OWN_PACKAGES: Final = ("agent", "collectors", "controlplane")


def settings_of(program: str) -> dict[str, Any]:
    """Run packaging/program.spec without PyInstaller. Return the arguments of its `Analysis`."""
    hooks = types.ModuleType("PyInstaller.utils.hooks")
    hooks.collect_submodules = _submodules  # type: ignore[attr-defined]
    names = ("PyInstaller", "PyInstaller.utils")
    stand_ins = {name: types.ModuleType(name) for name in names} | {hooks.__name__: hooks}
    arguments: dict[str, Any] = {}

    def analysis(*_: object, **settings: object) -> mock.Mock:
        arguments.update(settings)
        return mock.MagicMock()

    other_calls = {name: mock.Mock() for name in ("PYZ", "EXE", "COLLECT")}
    with (
        mock.patch.dict(os.environ, VENUE_PROGRAM=program),
        mock.patch.dict(sys.modules, stand_ins),
    ):
        code = compile(SPEC.read_text(), str(SPEC), "exec")
        exec(code, {"SPECPATH": str(SPEC.parent), "Analysis": analysis, **other_calls})
    return arguments


def _submodules(package: str, filter: Callable[[str], bool] = bool) -> list[str]:  # noqa: A002
    """Replaces PyInstaller's `collect_submodules`. Returns no modules of libraries."""
    if package.partition(".")[0] not in OWN_PACKAGES:
        return []
    folder = ROOT / package.replace(".", "/")
    every = pkgutil.walk_packages([str(folder)], f"{package}.")
    return [package, *(module.name for module in every if filter(module.name))]


class Blocker(importlib.abc.MetaPathFinder):
    """Prevents imports of the excluded modules and their submodules."""

    def __init__(self, excluded: set[str]) -> None:
        self._excluded = excluded

    def blocks(self, name: str) -> bool:
        parts = name.split(".")
        return any(".".join(parts[:end]) in self._excluded for end in range(1, len(parts) + 1))

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if self.blocks(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def unguarded_imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the names of the modules that the source code ``tree`` imports, also inside functions.

    Imports inside a `try`, and imports for type checkers only, are left out. ``package`` is the
    package to which relative imports refer.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Try) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            yield importlib.util.resolve_name(relative, package) if node.level else relative
        elif not isinstance(node, ast.expr):  # an expression contains no import
            yield from unguarded_imports(node, package)


def excluded_imports(program: str) -> Iterator[str]:
    settings = settings_of(program)
    blocker = Blocker(set(settings["excludes"]))
    for name in [name for name in sys.modules if blocker.blocks(name)]:
        del sys.modules[name]
    sys.meta_path.insert(0, blocker)
    for name in settings["hiddenimports"]:
        # Only Alembic can import the environment of the migrations.
        if name.partition(".")[0] in OWN_PACKAGES and not name.endswith(
            ("__main__", "migrations.env")
        ):
            yield from _failure(name, name, blocker)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if "site-packages" not in file or not file.endswith(".py"):
            continue
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        for module_name in dict.fromkeys(unguarded_imports(tree, module.__package__ or "")):
            if module_name not in sys.modules:
                yield from _failure(name, module_name, blocker)


def _failure(importer: str, name: str, blocker: Blocker) -> Iterator[str]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if blocker.blocks(error.name or ""):
            yield f"{importer}: {error.name}"
    except Exception:  # noqa: BLE001 - modules for other platforms fail with any exception
        pass


if __name__ == "__main__":
    for line in excluded_imports(sys.argv[1]):
        print(line)
