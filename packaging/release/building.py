"""Builds the files of a release in a directory, without the signature."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from release import BILL_SUFFIX, NOTES, PROVENANCE, SUMS, ReleaseError
from release.bills import Bill, write_bill
from release.checksums import write_sums
from release.clean_root import Root, build, download_wheels
from release.provenance import bundled_packages, statement
from release.source import Source

PROGRAMS = ("venue-agent", "venue-control")


def build_release(
    source: Source, root: Root, target: Path, targets: list[str], machine_targets: list[str]
) -> None:
    """Build everything of a release except its signature, in the new directory ``target``.

    Args:
        targets: the make targets that are built in the clean root.
        machine_targets: the make targets that are built on this machine.

    Raises:
        ReleaseError: A make target failed.
    """
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as name:
        directory = Path(name)
        tree, wheels = directory / "source", directory / "wheels"
        source.export(tree)
        download_wheels(source, root.facts["python"], wheels)
        build(root, tree, wheels, source.epoch, targets)
        rebuildable = {path.name for path in collect(tree / "dist", target, source)}
        bundled = bundled_packages(root, tree)
        if machine_targets:
            build_on_this_machine(source, machine_targets, directory / "machine")
            collect(directory / "machine/dist", target, source)
        (target / NOTES).write_text(source.notes)
        rebuildable |= {each + BILL_SUFFIX for each in rebuildable} | {NOTES}
        document = statement(
            source, target, root, wheels, bundled=bundled, rebuildable=rebuildable,
            parameters={"targets": targets, "machineTargets": machine_targets},
        )  # fmt: skip
        (target / PROVENANCE).write_text(json.dumps(document, indent=1) + "\n")
    write_sums(target)


def collect(dist: Path, target: Path, source: Source) -> list[Path]:
    """Copy the packages below ``dist`` to ``target``, and write a bill of materials for each.

    If the bill of a program, such as ``venue-agent.cdx.json``, is beside the program's package in
    ``dist``, the bill of the package extends the bill of the program. Returns the copied packages.

    Raises:
        ReleaseError: There are no packages, or two have the same name.
    """
    packages = sorted(
        path
        for path in dist.rglob("*")
        if path.is_file() and path.name != SUMS and not path.name.endswith(BILL_SUFFIX)
    )
    if not packages:
        raise ReleaseError(f"The targets wrote no package into {dist}.")
    target.mkdir(parents=True, exist_ok=True)
    copies = []
    for package in packages:
        copy = target / package.name
        if copy.exists():
            raise ReleaseError(f"Two targets write a file with the name {package.name}.")
        shutil.copyfile(package, copy)
        write_bill(copy, _bill_of_program(package), source.version, source.epoch)
        copies.append(copy)
    return copies


def _bill_of_program(package: Path) -> Bill | None:
    for program in PROGRAMS:
        path = package.with_name(program + BILL_SUFFIX)
        if re.match(rf"{program}[_-]\d", package.name):
            return json.loads(path.read_text()) if path.exists() else None
    return None


def build_on_this_machine(source: Source, targets: Iterable[str], tree: Path) -> None:
    """Run make targets that need programs of this machine, in a new copy of the source."""
    source.export(tree)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(source.epoch)}
    # These variables of the calling make would change the build.
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    for name in targets:
        done = subprocess.run(("make", "-C", str(tree), name), check=False, env=environment)
        if done.returncode != 0:
            raise ReleaseError(f"make {name} ended with {done.returncode}.")
