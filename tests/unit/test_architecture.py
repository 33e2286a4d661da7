"""The files and functions that the documents name exist, and no folder has too many files."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

PRODUCT = ("agent", "collectors", "controlplane")
FILES_IN_A_FOLDER_MAX = 15
FILES_IN_AGENT_MAX = 8
STOPS_MAX = 14
"""Maximum number of functions in a walk of ARCHITECTURE.md."""
DOCUMENTS = (ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))

WALK = re.compile(r"^### Walk: (.+?)\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
STOP = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)
NAMED_FILE = re.compile(rf"`((?:{'|'.join(PRODUCT)}|tests|packaging)/[\w/.-]+\.\w+)`")


def walks() -> dict[str, list[tuple[int, str, str]]]:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    return {
        title: [(int(number), file, name) for number, file, name in STOP.findall(body)]
        for title, body in WALK.findall(text)
    }


def definitions(file: Path) -> Iterator[str]:
    """Yield the functions and classes of a file, and the methods as ``Class.function``."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{part.name}"


def test_the_architecture_document_has_two_walks_of_few_stops_in_order() -> None:
    assert len(walks()) == 2
    for stops in walks().values():
        assert 5 <= len(stops) <= STOPS_MAX
        assert [number for number, _, _ in stops] == list(range(1, len(stops) + 1))


@pytest.mark.parametrize("title", walks())
def test_every_definition_named_in_a_walk_exists(title: str) -> None:
    for _, file, name in walks()[title]:
        assert name in set(definitions(ROOT / file)), f"{file} {name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    named = NAMED_FILE.findall(document.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_no_folder_has_too_many_files() -> None:
    folders = {file.parent for part in (*PRODUCT, "tests") for file in (ROOT / part).rglob("*.py")}
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in folders
        if (count := len(list(folder.glob("*.py")))) > FILES_IN_A_FOLDER_MAX
    }
    assert crowded == {}
    assert len(list((ROOT / "agent").glob("*.py"))) <= FILES_IN_AGENT_MAX


def test_every_picture_has_a_dark_and_a_light_form() -> None:
    image = re.compile(r'(?:srcset|src)="(?:docs/)?images/([\w.-]+)"')
    documents = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    named = {name for document in documents for name in image.findall(document.read_text())}
    assert named == {path.name for path in (ROOT / "docs/images").iterdir()}
    dark = {name for name in named if "-light." not in name}
    assert {name.replace(".", "-light.") for name in dark} == named - dark
