"""Writes the Homebrew formula of a version: the wheel, and its requirements with their hashes.

The formula is for a tap of your own, and for collecting reports by hand. `service install` refuses
a program that Homebrew installed, because a user owns its files.

Usage: python packaging/macos/homebrew.py VERSION WHEEL URL OUTPUT_DIR
"""

import hashlib
import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[2]
REQUIREMENTS: Final = ROOT / "requirements/package.txt"
PYTHON: Final = "3.13"
MARKER_VALUES: Final = {
    "sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix",
    "python_version": PYTHON, "python_full_version": f"{PYTHON}.0", "extra": "",
    "platform_python_implementation": "CPython", "implementation_name": "cpython",
}  # fmt: skip
"""The values of environment markers (PEP 508) on a Mac with Homebrew's Python."""
FORMULA: Final = """\
# Written by packaging/macos/homebrew.py.
class VenueAgent < Formula
  desc "Finds out what is wrong with a machine, its printers and its network"
  homepage "{homepage}"
  url "{url}", using: :nounzip
  version "{version}"
  sha256 "{sha256}"
  license "Apache-2.0"

  depends_on arch: :arm64
  depends_on "python@{python}"

  def install
    (buildpath/"requirements.txt").write <<~REQUIREMENTS
{requirements}
    REQUIREMENTS
    python = "python{python}"
    system python, "-m", "venv", libexec
    pip = [libexec/"bin/python", "-m", "pip", "install", "--quiet", "--no-deps"]
    system(*pip, "--require-hashes", "--only-binary=:all:", "-r", "requirements.txt")
    system(*pip, buildpath/"{wheel}")
    bin.install_symlink libexec/"bin/venue-agent"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/venue-agent --version")
  end
end
"""


def required_packages() -> set[str]:
    """Return the names of all packages that the agent needs on a Mac."""
    names: set[str] = set()
    queue = ["venue-agent"]
    while queue:
        for line in requires(queue.pop()) or ():
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            is_needed = requirement.marker is None or requirement.marker.evaluate(MARKER_VALUES)
            if is_needed and name not in names:
                names.add(name)
                # Requirements are known only for installed packages. netifaces-plus, which is not
                # installed on Linux, requires no packages.
                if _is_installed(name):
                    queue.append(name)
    return names


def _is_installed(name: str) -> bool:
    try:
        requires(name)
    except PackageNotFoundError:
        return False
    return True


def pinned_entries(text: str, names: set[str]) -> str:
    """Return the entries of the packages ``names`` in a requirements file, with their hashes.

    Raises ValueError if a package has no entry.
    """
    # An entry is "NAME==VERSION ; MARKER \" and one line "    --hash=sha256:HASH \" for each file.
    entries = re.findall(r"^([\w.,\[\]-]+==(?:.*\\\n)+.*\n?)", text, re.MULTILINE)
    entry_by_name = {re.split(r"[\[=]", entry)[0]: entry for entry in entries}
    if missing := names - set(entry_by_name):
        raise ValueError(f"{REQUIREMENTS} has no {', '.join(sorted(missing))}")
    return "".join(entry_by_name[name] for name in sorted(names))


def formula(version: str, wheel: Path, url: str) -> str:
    """Return the formula. ``url`` is the address of the wheel."""
    lines = pinned_entries(REQUIREMENTS.read_text(), required_packages()).splitlines()
    return FORMULA.format(
        # The project has no web page of its own, so the homepage is the folder of the wheel.
        homepage=url.rpartition("/")[0], url=url, version=version, python=PYTHON, wheel=wheel.name,
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        # In the Ruby heredoc, two backslashes stand for one backslash.
        requirements="\n".join(" " * 6 + line.replace("\\", "\\\\") for line in lines),
    )  # fmt: skip


def main() -> int:
    version, wheel, url, output = sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    output.mkdir(parents=True, exist_ok=True)
    (output / "venue-agent.rb").write_text(formula(version, wheel, url))
    return 0


if __name__ == "__main__":
    sys.exit(main())
