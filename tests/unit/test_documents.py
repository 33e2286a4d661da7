"""Every document can be found."""

import re
from pathlib import Path

from tests.paths import ROOT

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TESTING = ROOT / "docs/testing.md"
CLICKS_MAX = 2


def linked(document: Path) -> set[Path]:
    """Return the documents that a document links to. A link to a folder means its README."""
    targets = {(document.parent / name).resolve() for name in LINK.findall(document.read_text())}
    return {each / "README.md" if each.is_dir() else each for each in targets}


def test_every_link_leads_to_a_file() -> None:
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    missing = {
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in linked(document)
        if not target.exists()
    }
    assert missing == set()


def test_every_document_is_two_clicks_from_the_readme() -> None:
    reached = {ROOT / "README.md"}
    for _ in range(CLICKS_MAX):
        reached |= {target for each in reached for target in linked(each) if target.suffix == ".md"}
    assert set((ROOT / "docs").rglob("*.md")) - reached == set()


def test_what_a_medium_run_leaves_out_is_documented() -> None:
    smaller = re.compile(r"mark\.large\b|\blarge_except\(|\bamount\(medium|\bamount\(small")
    files = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if path != ROOT / "tests/sizes.py" and smaller.search(path.read_text())
    }
    listed = re.findall(r"^\| `(tests/[\w/]+\.py)` \|", TESTING.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(files)
