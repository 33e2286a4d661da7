"""Tests of how `make affected` selects the tests for a change."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.affected import (
    READERS,
    affected_modules,
    describe_selection,
    files_with_tests,
    hidden_imports,
    importers_in,
    module_of,
    readers_of,
    select_tests,
)
from tests.paths import ROOT

SOURCES: Mapping[str, str] = {
    "agent": "",
    "agent.__main__": "",
    "agent.cli.main": "",
    "agent.cli.run": "",
    "agent.rules.retry": "",
    "collectors.__main__": "",
    "tests.conftest": "",
    "tests.fakes.clock": "",
    "tests.unit.agent.conftest": "",
    "tests.unit.agent.test_cli": 'DOCUMENT = ROOT / "docs" / "cli.md"',
    "tests.unit.agent.test_retry": "",
    "tests.unit.test_architecture": "",
}
TESTS = [f"{name.replace('.', '/')}.py" for name in SOURCES if ".test_" in name]


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("agent/rules/retry.py", "agent.rules.retry"),
        ("agent/rules/__init__.py", "agent.rules"),
        ("packaging/manual.py", None),
        ("controlplane/console/main.js", None),
    ],
)
def test_module_of_returns_a_module_only_for_python_files_in_the_packages(
    path: str, module: str | None
) -> None:
    assert module_of(path) == module


def modules_reached(*changed: str, importers: Mapping[str, set[str]] | None = None) -> set[str]:
    affected = affected_modules(
        changed, SOURCES, lambda module: (importers or {}).get(module, set())
    )
    assert affected is not None
    return affected - {"tests.unit.test_architecture"}  # affected by every change of a source file


def test_a_change_reaches_the_module_and_its_importers() -> None:
    importers = {"agent.rules.retry": {"agent.cli.run", "tests.unit.agent.test_retry"}}
    assert modules_reached("agent/rules/retry.py", importers=importers) == {
        "agent.rules.retry", "agent.cli.run", "tests.unit.agent.test_retry",
    }  # fmt: skip


def test_the_init_file_of_a_package_reaches_all_modules_of_the_package() -> None:
    affected = modules_reached("agent/__init__.py")
    assert {"agent", "agent.__main__", "agent.cli.run", "agent.rules.retry"} <= affected


def test_a_source_file_reaches_tests_that_read_all_sources() -> None:
    affected = affected_modules(["agent/rules/retry.py"], SOURCES, lambda _module: ())
    assert affected is not None
    assert "tests.unit.test_architecture" in affected


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "requirements/development.txt", "agent/rules/deleted.py"]
)
def test_changes_of_project_files_and_deleted_modules_select_all_tests(path: str) -> None:
    assert affected_modules([path], SOURCES, lambda _module: ()) is None


def test_a_document_reaches_the_tests_that_name_it() -> None:
    assert modules_reached("docs/cli.md") == {"tests.unit.agent.test_cli"}


def test_a_file_without_readers_selects_no_tests() -> None:
    assert modules_reached("LICENSE") == set()


def test_a_data_file_reaches_modules_of_its_own_folder_that_name_it() -> None:
    sources = {
        "agent.hosts.makers": 'DATA = FOLDER / "makers.bin"',
        "agent.hosts.rows": "",
        "controlplane.makers": '"makers.bin"',
    }
    assert readers_of("agent/hosts/makers.bin", sources) == {"agent.hosts.makers"}


def test_a_conftest_reaches_the_tests_of_its_folder() -> None:
    assert select_tests({"tests.unit.agent.conftest"}, TESTS) == [
        "tests/unit/agent/test_cli.py", "tests/unit/agent/test_retry.py",
    ]  # fmt: skip
    assert select_tests({"tests.conftest"}, TESTS) == sorted(TESTS)


def test_a_test_counts_as_an_importer_of_the_programs_that_it_starts() -> None:
    text = 'WORDS = ("-m",\n    "agent", "run")\nCODE = """\nimport agent.daemon\n"""'
    assert set(hidden_imports("tests.scenario.test_restart", text, SOURCES)) == {
        "agent.__main__", "collectors.__main__", "agent.daemon",
    }  # fmt: skip
    assert set(hidden_imports("agent.doctor.public_status", text, SOURCES)) == set()


def test_a_module_counts_as_an_importer_of_the_package_that_it_loads_by_name() -> None:
    imported = set(hidden_imports("agent.cli.main", "", SOURCES))
    assert imported == {"agent.cli.main", "agent.cli.run"}


def test_scenario_tests_are_left_out_of_a_small_run() -> None:
    names = ("tests/unit/agent/rules/test_retry.py", "tests/scenario/crash/test_crash.py")
    files = [*map(Path, names), Path("tests/unit/agent/samples.py"), Path("agent/test_mode.py")]
    assert files_with_tests(files, "small") == [names[0]]
    assert files_with_tests(files, "medium") == list(names)


def test_the_summary_names_at_most_three_changed_files() -> None:
    line = describe_selection(37, 330, ["a.py"])
    assert line == "37 of 330 test files, because of changes in a.py"
    assert describe_selection(5, 330, ["a.py", "b.py", "c.py", "d.py", "e.py"]).endswith(
        "c.py and 2 more"
    )


@pytest.fixture(scope="module")
def sources() -> Mapping[str, str]:
    files = [path for name in ("agent", "tests") for path in (ROOT / name).rglob("*.py")]
    modules = {module_of(path.relative_to(ROOT).as_posix()): path for path in files}
    return {name: path.read_text() for name, path in modules.items() if name is not None}


@pytest.mark.medium
def test_the_graph_of_this_checkout_has_direct_and_indirect_importers(
    sources: Mapping[str, str],
) -> None:
    importers = set(importers_in(sources)("agent.rules.retry"))
    assert "tests.unit.agent.rules.test_retry" in importers
    assert "agent.tasks.session.circuit_breaker" in importers
    assert "tests.scenario.test_restart" in importers, "this test starts the program"
    assert "tests.unit.agent.presentation.test_humanize" not in importers
    assert "tests.conftest" not in importers, "a change would otherwise select every test"


def test_every_reader_in_the_table_exists(sources: Mapping[str, str]) -> None:
    assert {reader for _, readers in READERS for reader in readers} <= sources.keys()
