"""The source of a release: a commit in git with its tag, version and changelog."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from release import ROOT, ReleaseError

_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """A commit to release.

    Attributes:
        commit: the full hash of the commit.
        epoch: the time of the commit in seconds since 1970.
        notes: the section of the changelog about this version, in Markdown.
    """

    checkout: Path
    commit: str
    version: str
    epoch: int
    notes: str

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    def text(self, path: str) -> str:
        """Return the content of a file in the commit."""
        return git(self.checkout, "show", f"{self.commit}:{path}")

    def export(self, target: Path) -> None:
        """Write all files of the commit to the new directory ``target``."""
        command = (*_git(self.checkout), "archive", "--format=tar", self.commit)
        archive = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        target.mkdir(parents=True)
        subprocess.run(("tar", "--extract", "--directory", str(target)), input=archive, check=True)


def read_source(checkout: Path, revision: str) -> Source:
    """Return the commit that ``revision`` names.

    Raises:
        ReleaseError: There is no such commit, it has no version, or its changelog has no section
            about its version.
    """
    try:
        commit = git(checkout, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()
    except subprocess.CalledProcessError as error:
        message = f"This clone has no commit {revision}. Run: git fetch --tags"
        raise ReleaseError(message) from error
    version = _version_in(git(checkout, "show", f"{commit}:agent/__init__.py"))
    epoch = int(git(checkout, "log", "-1", "--format=%ct", commit))
    notes = changelog_section(git(checkout, "show", f"{commit}:CHANGELOG.md"), version)
    return Source(checkout, commit, version, epoch, notes)


def source_to_release(checkout: Path = ROOT) -> Source:
    """Return the checked-out commit.

    Raises:
        ReleaseError: The commit cannot be released: there are uncommitted changes, the tag or the
            version is missing, they differ, or the changelog lacks the version.
    """
    if changes := git(checkout, "status", "--porcelain").splitlines():
        names = ", ".join(line[3:] for line in changes[:3])  # without the two status letters
        raise ReleaseError(f"There are uncommitted changes: {names}\nCommit or remove them.")
    tags = [tag for tag in git(checkout, "tag", "--points-at", "HEAD").split() if tag[0] == "v"]
    version = _version_in((checkout / "agent/__init__.py").read_text())
    if not tags:
        message = f"The commit has no tag. Run: git tag --sign v{version}"
        raise ReleaseError(message)
    if f"v{version}" not in tags:
        message = f"The tag {tags[0]} is not the version {version} of agent/__init__.py."
        raise ReleaseError(f"{message}\nChange the version, or move the tag.")
    return read_source(checkout, "HEAD")


def changelog_section(text: str, version: str) -> str:
    """Return the text below ``## VERSION - DATE``.

    Raises:
        ReleaseError: The changelog has no such section, or it is empty.
    """
    heading = rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    match = re.search(heading, text, re.MULTILINE | re.DOTALL)
    if match is None:
        message = f'CHANGELOG.md has no section "## {version} - YYYY-MM-DD".'
        raise ReleaseError(f"{message}\nRename the section Unreleased, and commit.")
    if not match[1].strip():
        message = f"The section {version} of CHANGELOG.md is empty."
        raise ReleaseError(f"{message}\nDescribe the changes, and commit.")
    return match[1].strip() + "\n"


def _version_in(text: str) -> str:
    match = _VERSION.search(text)
    if match is None:
        message = 'agent/__init__.py has no line __version__ = "VERSION".'
        raise ReleaseError(f"{message}\nAdd it, and commit.")
    return match[1]


def git(checkout: Path, *arguments: str) -> str:
    """Run git and return its output. Raises `subprocess.CalledProcessError` if it fails."""
    done = subprocess.run(
        (*_git(checkout), *arguments), capture_output=True, text=True, check=True,
        env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    return done.stdout


def _git(checkout: Path) -> tuple[str, ...]:
    # Lets root read a user's checkout.
    return ("git", "-c", f"safe.directory={checkout}", "-C", str(checkout))
