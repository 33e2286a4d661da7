"""Checks the pinned requirements for known vulnerabilities, with pip-audit.

A vulnerability that does not apply has a statement in security/openvex.json (OpenVEX 0.2.0).

Usage: python -m release.audit [--advisories FOLDER] [REQUIREMENTS ...]
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release import ROOT, ReleaseError, normalize
from release.advisories import read_advisories, serve

VEX: Final = ROOT / "security/openvex.json"
OSV: Final = "https://api.osv.dev/v1/query"
DOES_NOT_APPLY: Final = ("not_affected", "fixed")
"""The statuses of OpenVEX with which a vulnerability does not count."""
WITHIN_S: Final = 600
"""Maximum duration of one run of pip-audit in seconds."""


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A known vulnerability of a pinned package.

    ``names`` are its identifiers, the first of which is that of the advisory. ``lists`` are the
    file names of the lists of requirements that contain the package.
    """

    package: str
    version: str
    names: tuple[str, ...]
    fixed_in: tuple[str, ...]
    lists: tuple[str, ...]


def audit(requirements: Path, address: str) -> list[Vulnerability]:
    """Run pip-audit on a list of requirements, including those for other platforms.

    Raises:
        ReleaseError: The advisories cannot be fetched, or a package was not audited.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(without_markers(requirements.read_text()))
        file.flush()
        output = _pip_audit(file.name, address)
    return vulnerabilities_of(output, requirements.name)


def without_markers(text: str) -> str:
    """Remove the environment markers, so that pip-audit checks the packages for all platforms."""
    return re.sub(r"^([\w.,\[\]-]+==[\w.]+) ; [^\\\n]+ \\$", r"\1 \\", text, flags=re.MULTILINE)


def _pip_audit(requirements: str, address: str) -> dict[str, Any]:
    command = (
        sys.executable, "-m", "pip_audit", "--requirement", requirements, "--require-hashes",
        "--disable-pip", "--vulnerability-service", "osv", "--osv-url", address, "--format", "json",
        "--progress-spinner", "off", "--cache-dir", str(ROOT / "build/audit-cache"),
    )  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=WITHIN_S, env=os.environ
        )
    except subprocess.TimeoutExpired as error:
        raise ReleaseError(f"pip-audit did not end within {WITHIN_S} s.") from error
    try:
        return dict(json.loads(done.stdout))
    except ValueError as error:
        reason = (done.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1]
        message = f"{address} cannot be queried for advisories ({reason.partition(':')[0]})."
        hint = "Name a folder of advisories in the OSV format: make audit ADVISORIES=FOLDER"
        raise ReleaseError(f"{message}\n{hint}") from error


def vulnerabilities_of(report: dict[str, Any], name: str) -> list[Vulnerability]:
    """Return the vulnerabilities in a report of pip-audit.

    Raises ReleaseError if pip-audit skipped a package.
    """
    for each in report["dependencies"]:
        if "skip_reason" in each:
            raise ReleaseError(f"{name}: {each['name']} was not audited: {each['skip_reason']}")
    return [
        Vulnerability(
            package=normalize(each["name"]),
            version=each["version"],
            names=(known["id"], *known.get("aliases", ())),
            fixed_in=tuple(known["fix_versions"]),
            lists=(name,),
        )
        for each in report["dependencies"]
        for known in each["vulns"]
    ]


def merge(vulnerabilities: Iterable[Vulnerability]) -> list[Vulnerability]:
    """Return each vulnerability once, with all lists of requirements that have its package."""
    merged: dict[tuple[str, str, str], Vulnerability] = {}
    for each in vulnerabilities:
        key = (each.package, each.version, each.names[0])
        lists = (*(merged[key].lists if key in merged else ()), *each.lists)
        merged[key] = Vulnerability(each.package, each.version, each.names, each.fixed_in, lists)
    return [merged[key] for key in sorted(merged)]


def statement_about(vulnerability: Vulnerability, vex: dict[str, Any]) -> dict[str, Any] | None:
    """Return the statement that the vulnerability does not apply, if there is one."""
    for statement in vex["statements"]:
        stated = statement["vulnerability"]
        names = {stated["name"], *stated.get("aliases", ())}
        packages = {
            component["@id"].removeprefix("pkg:pypi/").partition("@")[0]
            for product in statement["products"]
            for component in product.get("subcomponents", ())
        }
        is_about = names & set(vulnerability.names) and vulnerability.package in packages
        if is_about and statement["status"] in DOES_NOT_APPLY:
            return dict(statement)
    return None


def report_lines(
    vulnerabilities: list[Vulnerability], vex: dict[str, Any]
) -> tuple[list[str], int]:
    """Return the lines to print, and the number of vulnerabilities that may apply."""
    lines, count = [], 0
    for each in vulnerabilities:
        title = f"{each.package} {each.version}: {each.names[0]}"
        statement = statement_about(each, vex)
        if statement is None:
            count += 1
            fix = f"fixed in {', '.join(each.fixed_in)}" if each.fixed_in else "no fixed version"
            lines.append(f"{title} ({', '.join(each.lists)}; {fix})")
        else:
            reason = statement.get("justification") or statement.get("impact_statement", "")
            lines.append(f"{title}: {statement['status']} ({reason})")
    return lines, count


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the requirements for vulnerabilities.")
    parser.add_argument("--advisories", type=Path, help="folder of advisories in the OSV format")
    parser.add_argument("requirements", nargs="*", type=Path)
    options = parser.parse_args()
    lists = options.requirements or sorted((ROOT / "requirements").glob("*.txt"))
    try:
        with contextlib.ExitStack() as stack:
            address = OSV
            if options.advisories is not None:
                by_package = read_advisories(options.advisories)
                if not by_package:
                    raise ReleaseError(f"{options.advisories} contains no advisories.")
                address = stack.enter_context(serve(by_package))
            vulnerabilities = merge(
                vulnerability for path in lists for vulnerability in audit(path, address)
            )
    except ReleaseError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    lines, count = report_lines(vulnerabilities, json.loads(VEX.read_text()))
    verdict = f"Vulnerabilities that may apply: {count} (lists of requirements: {len(lists)})"
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, verdict)))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
