"""Verifies a downloaded release. docs/release.md describes what is checked.

Usage: python -m release.verify DIRECTORY [--signers FILE] [--no-rebuild] [--cache DIR]
           [--mirror URL]
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from release import BILL_SUFFIX, NOTES, PROVENANCE, ROOT, SIGNATURE, SUMS, ReleaseError
from release.bills import differences_from_bill
from release.building import build_release
from release.checksums import differences_from_signature, differences_from_sums, digest
from release.clean_root import DEFAULT_MIRROR, prepare_root
from release.provenance import commit_of, debian_differences, differences_from_source
from release.source import read_source


def differences(directory: Path, signers: Path, checkout: Path) -> list[str]:
    """Return one line for each problem of a release, without building it.

    The content of the packages is examined only if signature and checksums are valid.

    Raises:
        ReleaseError: The checkout does not have the release's commit.
    """
    if not directory.is_dir():
        return [f"{directory}: this directory does not exist"]
    if lines := differences_from_signature(directory, signers) + differences_from_sums(directory):
        return lines
    try:
        source = read_source(checkout, commit_of(directory))
        tagged_source = read_source(checkout, f"refs/tags/{source.tag}")
    except ValueError as error:
        return [str(error)]
    lines = []
    if tagged_source.commit != source.commit:
        lines.append(
            f"{source.tag}: in this clone, the tag names the commit {tagged_source.commit}"
            " and not the commit of the release"
        )
    lines += differences_from_source(directory, source)
    metadata = {SUMS, SIGNATURE, PROVENANCE, NOTES}
    for path in sorted(directory.iterdir()):
        if path.name not in metadata and not path.name.endswith(BILL_SUFFIX):
            lines += differences_from_bill(path)
    return lines


def differences_from_rebuild(
    directory: Path, checkout: Path, cache: Path, mirror: str
) -> tuple[list[str], list[str]]:
    """Build the release again in a clean Debian. Return one line for each difference, and the names
    of the files that were not built again.

    Raises:
        ReleaseError: The release cannot be built.
    """
    source = read_source(checkout, commit_of(directory))
    document = json.loads((directory / PROVENANCE).read_text())
    parameters = document["predicate"]["buildDefinition"]["externalParameters"]
    root = prepare_root(cache, mirror)
    lines = debian_differences(directory, root)
    with tempfile.TemporaryDirectory(prefix="again-", dir=cache) as name:
        rebuild = Path(name) / "release"
        build_release(source, root, rebuild, parameters["targets"], [])
        subjects = document["subject"]
        expected = {each["name"] for each in subjects if each["annotations"]["builtInCleanRoot"]}
        built = {path.name for path in rebuild.iterdir()} - {SUMS, PROVENANCE}
        for each in sorted(expected | built):
            if each not in built:
                lines.append(f"{each}: not built by the rebuild")
            elif each not in expected:
                lines.append(f"{each}: built only by the rebuild")
            elif digest(rebuild / each) != digest(directory / each):
                lines.append(f"{each}: the rebuild has different bytes")
    names_not_rebuilt = {each["name"] for each in subjects} - expected
    return lines, sorted(names_not_rebuilt)


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify a release.")
    parser.add_argument("directory", help="the directory with all files of the release")
    parser.add_argument("--signers", type=Path, default=ROOT / "packaging/release/allowed_signers")
    parser.add_argument("--no-rebuild", action="store_true", help="do not build the release again")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/release")
    parser.add_argument("--mirror", default=DEFAULT_MIRROR)
    options = parser.parse_args()
    if not options.directory:
        sys.stderr.write("Set DIR to the directory of the release: make verify-release DIR=path\n")
        return 2
    directory = Path(options.directory).absolute()
    names_not_rebuilt: list[str] = []
    try:
        lines = differences(directory, options.signers, ROOT)
        if not lines:
            _print_ok(directory)
        if not lines and not options.no_rebuild:
            if os.geteuid() != 0:
                message = "Only root can build the release again. Use sudo, or ARGS=--no-rebuild"
                raise ReleaseError(message)
            lines, names_not_rebuilt = differences_from_rebuild(
                directory, ROOT, options.cache.absolute(), options.mirror
            )
    except ReleaseError as error:
        lines = str(error).splitlines()
    if lines:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return 1
    if not options.no_rebuild:
        sys.stdout.write("ok  a build of the commit has the same bytes\n")
        sys.stdout.write("".join(f"    not built again: {name}\n" for name in names_not_rebuilt))
    return 0


def _print_ok(directory: Path) -> None:
    count = len((directory / SUMS).read_text().splitlines())
    sys.stdout.write(f"ok  signature, {count} checksums, provenance and bills of materials\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
