"""Only a clean, tagged commit whose changelog describes its version can be released."""

import subprocess
import sys
from pathlib import Path

import pytest
from release import ReleaseError
from release.building import build_on_this_machine, collect
from release.make import check_key
from release.source import Source, changelog_section, read_source, source_to_release

from tests.packaging.release.tiny_release import (
    CHANGELOG,
    VERSION,
    git,
    make_key,
    make_repository,
)
from tests.paths import ROOT

FILES = {"agent/__init__.py": f'__version__ = "{VERSION}"\n', "CHANGELOG.md": CHANGELOG}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    make_repository(directory, FILES)
    return directory


def test_a_clean_tagged_commit_can_be_released(checkout: Path, tmp_path: Path) -> None:
    source = source_to_release(checkout)
    assert (source.version, source.tag, source.notes) == (VERSION, "v1.2.3", "- First.\n")
    assert source == read_source(checkout, "v1.2.3")
    source.export(tmp_path / "copy")
    assert (tmp_path / "copy/CHANGELOG.md").read_text() == CHANGELOG
    assert not (tmp_path / "copy/.git").exists()


def test_uncommitted_changes_are_refused(checkout: Path) -> None:
    (checkout / "new.py").touch()
    with pytest.raises(ReleaseError, match=r"uncommitted changes: new\.py\nCommit or remove them"):
        source_to_release(checkout)


def test_a_commit_without_a_tag_is_refused(checkout: Path) -> None:
    git(checkout, "tag", "--delete", "v1.2.3")
    with pytest.raises(ReleaseError, match=r"has no tag. Run: git tag --sign v1\.2\.3"):
        source_to_release(checkout)


def test_a_tag_that_is_not_the_version_is_refused(checkout: Path) -> None:
    git(checkout, "tag", "--delete", "v1.2.3")
    git(checkout, "tag", "v1.3.0")
    with pytest.raises(ReleaseError, match=r"tag v1\.3\.0 is not the version 1\.2\.3"):
        source_to_release(checkout)


def test_a_changelog_without_the_version_is_refused(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- First.\n")
    git(checkout, "commit", "--quiet", "--all", "--message", "changelog")
    git(checkout, "tag", "--force", "v1.2.3")
    with pytest.raises(ReleaseError, match=r'no section "## 1\.2\.3 - YYYY-MM-DD"'):
        source_to_release(checkout)


def test_a_missing_commit_is_refused_with_advice_to_fetch(checkout: Path) -> None:
    with pytest.raises(ReleaseError, match=r"no commit 0000.* git fetch --tags"):
        read_source(checkout, "0" * 40)


def test_an_empty_changelog_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r'no section "## 1\.2\.3 - YYYY-MM-DD"'):
        changelog_section("", "1.2.3")


def test_an_empty_section_of_the_changelog_is_refused() -> None:
    text = "## 1.2.3 - 2026-11-23\n\n## 1.2.2 - 2026-01-01\n- x\n"
    with pytest.raises(ReleaseError, match=r"The section 1\.2\.3 of CHANGELOG\.md is empty"):
        changelog_section(text, "1.2.3")


def test_a_commit_without_a_version_is_refused(checkout: Path) -> None:
    (checkout / "agent/__init__.py").write_text("")
    git(checkout, "commit", "--quiet", "--all", "--message", "version")
    for read in (source_to_release, lambda folder: read_source(folder, "HEAD")):
        with pytest.raises(ReleaseError, match=r"agent/__init__\.py has no line __version__"):
            read(checkout)


def test_a_dot_of_a_version_matches_only_a_dot() -> None:
    with pytest.raises(ReleaseError):
        changelog_section("## 1x2x3 - 2026-11-23\n- x\n", "1.2.3")


@pytest.mark.needs("ssh-keygen")
def test_only_a_key_of_the_allowed_signers_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="Set KEY to the SSH key"):
        check_key(None, tmp_path / "signers")
    make_key(tmp_path / "key")
    with pytest.raises(ReleaseError, match="not listed in") as refused:
        check_key(tmp_path / "key", tmp_path / "signers")
    line = str(refused.value).splitlines()[1]
    (tmp_path / "signers").write_text(f"{line}\n")
    assert check_key(tmp_path / "key", tmp_path / "signers") == tmp_path / "key"


def test_missing_or_equally_named_packages_are_refused(tmp_path: Path, checkout: Path) -> None:
    source = Source(checkout, "0" * 40, VERSION, 0, "")
    (tmp_path / "dist/arm64").mkdir(parents=True)
    with pytest.raises(ReleaseError, match="wrote no package"):
        collect(tmp_path / "dist", tmp_path / "release", source)
    (tmp_path / "dist/a.msi").write_text("1")
    (tmp_path / "dist/arm64/a.msi").write_text("2")
    with pytest.raises(ReleaseError, match=r"Two targets write a file with the name a\.msi"):
        collect(tmp_path / "dist", tmp_path / "release", source)


def test_packages_are_built_in_a_copy_with_the_commit_time(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    makefile = "msi:\n\t@mkdir dist; echo $$SOURCE_DATE_EPOCH > dist/a.msi\nbroken:\n\t@false\n"
    make_repository(checkout, {**FILES, "Makefile": makefile})
    source = read_source(checkout, "HEAD")
    build_on_this_machine(source, ["msi"], tmp_path / "copy")
    (package,) = collect(tmp_path / "copy/dist", tmp_path / "release", source)
    assert package.read_text() == f"{source.epoch}\n"
    assert package.with_name("a.msi.cdx.json").exists()
    with pytest.raises(ReleaseError, match="make broken ended with 2"):
        build_on_this_machine(source, ["broken"], tmp_path / "copy2")


def test_the_verification_needs_only_the_standard_library() -> None:
    words = (sys.executable, "-I", "-S", "-c")
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'packaging')!r}); import release.verify"
    subprocess.run((*words, code), check=True)
