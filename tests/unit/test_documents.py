"""Links between documents lead to files, every document can be reached from the README, and the
decisions have the required form.
"""

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TESTING = ROOT / "docs/testing.md"
CLICKS_MAX = 2
ADRS = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
HEADINGS = ("Context", "Decision", "Consequences", "Alternatives rejected")
CODE_FOLDERS = ("agent", "collectors", "controlplane", "packaging", "tests")


def link_targets(document: Path) -> set[Path]:
    """Return the files that a document links to. A link to a folder is a link to its README."""
    targets = {(document.parent / name).resolve() for name in LINK.findall(document.read_text())}
    return {target / "README.md" if target.is_dir() else target for target in targets}


def test_every_link_leads_to_a_file() -> None:
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    missing = {
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in link_targets(document)
        if not target.exists()
    }
    assert missing == set()


def test_every_document_is_at_most_two_clicks_from_the_readme() -> None:
    reached = {ROOT / "README.md"}
    for _ in range(CLICKS_MAX):
        reached |= {
            target for path in reached for target in link_targets(path) if target.suffix == ".md"
        }
    assert set((ROOT / "docs").rglob("*.md")) - reached == set()


def test_the_document_about_testing_lists_the_files_that_a_medium_run_shortens() -> None:
    shortened = re.compile(r"mark\.large\b|\blarge_except\(|\bamount\(medium|\bamount\(small")
    files = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if path != ROOT / "tests/sizes.py" and shortened.search(path.read_text())
    }
    listed = re.findall(r"^\| `(tests/[\w/]+\.py)` \|", TESTING.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(files)


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(page.name[:4]) for page in ADRS] == list(range(1, len(ADRS) + 1))


@pytest.mark.parametrize("page", ADRS, ids=lambda page: page.stem)
def test_decision_has_title_status_date_and_headings(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert re.match(rf"# {int(page.name[:4])}\. [A-Z]", lines[0])
    assert re.fullmatch(r"Status: (accepted|superseded by \d+), 20\d\d-\d\d-\d\d\.", lines[2])
    headings = tuple(line[3:] for line in lines if line.startswith("## "))
    assert headings in (HEADINGS, HEADINGS[:3])


def test_index_of_decisions_lists_each_with_its_title_status_and_date() -> None:
    index = (ROOT / "docs/adr/README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \| (.+) \| (.+) \| \w+ \|$", index, re.M)
    expected = []
    for page in ADRS:
        number, title = page.read_text().splitlines()[0][2:].split(". ", 1)
        status, date = page.read_text().splitlines()[2][len("Status: ") : -1].split(", ")
        expected.append((number, title, page.name, status, date))
    assert rows == expected


def test_code_paths_in_decisions_and_architecture_exist() -> None:
    path = re.compile(rf"`((?:{'|'.join(CODE_FOLDERS)})/[\w/.-]+)`")
    named = {
        (document.name, name)
        for document in (*ADRS, ROOT / "ARCHITECTURE.md")
        for name in path.findall(document.read_text())
    }
    assert len(named) > 50
    assert {(document, name) for document, name in named if not (ROOT / name).exists()} == set()
