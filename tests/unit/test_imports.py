"""Imports form no cycles. import-linter checks which package may import which other package."""

import re
from graphlib import TopologicalSorter

import grimp
import pytest

from tests.paths import ROOT

SCRIPT_IMPORT = re.compile(r'^import .* from "\./(\w+\.js)";$', re.MULTILINE)
ARROWS_MAX = 95
"""Maximum number of arrows in the graph of the top-level packages and modules of the service. An
arrow stands for all imports of one package by another.
"""


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    graph = grimp.build_graph(
        "agent", "collectors", "controlplane", exclude_type_checking_imports=True, cache_dir=None
    )
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_modules_form_no_cycle(imports: dict[str, set[str]]) -> None:
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the cycle


def test_packages_of_the_service_form_no_cycle(imports: dict[str, set[str]]) -> None:
    packages: dict[str, set[str]] = {}
    for importer, imported in imports.items():
        parts = (part_of(importer), *map(part_of, imported))
        if parts[0]:
            packages.setdefault(parts[0], set()).update(set(parts[1:]) - {parts[0], ""})
    assert len(packages) > 20
    TopologicalSorter(packages).prepare()
    assert sum(map(len, packages.values())) <= ARROWS_MAX


def part_of(module: str) -> str:
    """Return the top-level part of the service that a module belongs to, "" for other modules."""
    program, _, rest = module.partition(".")
    return rest.partition(".")[0] if program == "controlplane" else ""


def test_scripts_of_the_console_form_no_cycle() -> None:
    scripts = {
        path.name: set(SCRIPT_IMPORT.findall(path.read_text()))
        for path in (ROOT / "controlplane/console").glob("*.js")
    }
    assert len(scripts) > 20
    assert sum(map(len, scripts.values())) > 50
    TopologicalSorter(scripts).prepare()
