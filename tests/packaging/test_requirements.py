"""Every package that a build or a developer installs has a pinned version and known hashes."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions, requires
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.paths import ROOT

REQUIREMENTS: Final = ROOT / "requirements"
LISTS: Final = tuple(sorted(path.name for path in REQUIREMENTS.iterdir()))
ENTRY: Final = re.compile(
    r"^(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?==(?P<version>[\w.]+)(?P<marker> ; [^\\\n]+)?"
    r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)$",
    re.MULTILINE,
)
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: Final = {
    "development.txt": ("dev", "controlplane", "postgresql"),
    "package.txt": ("package",),
    "service-package.txt": ("package", "controlplane", "postgresql"),
}
"""The extras of pyproject.toml whose dependencies a list of requirements must contain."""


def normalize(name: str) -> str:
    """Return the normalized name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    return {normalize(match["name"]): match["version"] for match in ENTRY.finditer(text)}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().split()
    return {normalize(name): version for name, version in (line.split("==") for line in lines)}


@pytest.mark.parametrize("name", LISTS)
def test_every_requirement_has_a_pin_and_hashes(name: str) -> None:
    text = (REQUIREMENTS / name).read_text()
    entries = [line for line in text.splitlines() if re.match(r"[\w-]", line)]
    assert entries
    assert len(entries) == len(list(ENTRY.finditer(text)))
    assert constraints().items() >= pins(text).items(), "run `make hashes`"


def test_every_pin_is_used() -> None:
    used = {name for each in LISTS for name in pins((REQUIREMENTS / each).read_text())}
    assert constraints().keys() == used


@pytest.mark.parametrize("name", sorted(EXTRAS))
def test_a_requirements_list_has_every_direct_dependency(name: str) -> None:
    project = PROJECT["project"]
    extras = (each for extra in EXTRAS[name] for each in project["optional-dependencies"][extra])
    dependencies = {
        normalize(re.split(r"[\[<>=!~; ]", each)[0]) for each in (*project["dependencies"], *extras)
    }
    listed_pins = pins((REQUIREMENTS / name).read_text())
    assert dependencies - {"venue-agent"} <= listed_pins.keys(), "run `make hashes`"


@pytest.mark.parametrize("name", LISTS)
def test_a_list_names_the_extras_that_its_packages_need(name: str) -> None:
    # pip before 23.3 does not apply the pin of `coverage` to a requirement of `coverage[toml]`. It
    # takes the newest version then, whose hash is unknown.
    entries = list(ENTRY.finditer((REQUIREMENTS / name).read_text()))
    extras_by_name = {
        normalize(each["name"]): set((each["extras"] or "").split(",")) for each in entries
    }
    for package in extras_by_name.keys() & {normalize(each.name) for each in distributions()}:
        for requirement in map(Requirement, requires(package) or ()):
            marker = requirement.marker
            is_needed = marker is None or any(
                marker.evaluate({"extra": extra}) for extra in ("", *extras_by_name[package])
            )
            if is_needed and normalize(requirement.name) in extras_by_name:
                assert requirement.extras <= extras_by_name[normalize(requirement.name)], (
                    requirement
                )


def test_build_backend_has_a_pinned_version_and_hashes() -> None:
    (backend,) = PROJECT["build-system"]["requires"]
    assert backend == f"hatchling=={constraints()['hatchling']}"
    assert "hatchling" in pins((REQUIREMENTS / "development.txt").read_text())


def test_each_installation_of_the_makefiles_checks_hashes() -> None:
    makefiles = (ROOT / "Makefile", *(ROOT / "packaging").glob("*.mk"))
    lines = [line for file in makefiles for line in file.read_text().splitlines()]
    installs = [line for line in lines if " pip " in line and " install " in line]
    assert len(installs) >= 8
    for line in installs:
        is_project = line.endswith("--no-deps --no-build-isolation -e .")
        assert is_project or "$(HASHED)" in line, line


@pytest.mark.medium
def test_forged_wheel_of_a_pinned_version_is_refused(tmp_path: Path) -> None:
    text = (REQUIREMENTS / "development.txt").read_text()
    entry = next(match for match in ENTRY.finditer(text) if match["name"] == "h11")
    required = tmp_path / "required.txt"
    required.write_text(entry[0] + "\n")
    info = f"h11-{entry['version']}.dist-info"
    wheel = tmp_path / f"h11-{entry['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("h11.py", "raise SystemExit('forged')")
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        head = f"Metadata-Version: 2.1\nName: h11\nVersion: {entry['version']}\n"
        packed.writestr(f"{info}/METADATA", head)
        packed.writestr(f"{info}/RECORD", "")
    pip = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install")
    source = ("--no-index", "--find-links", str(tmp_path), "--target", str(tmp_path / "site"))
    done = subprocess.run(
        (*pip, *source, "--require-hashes", "-r", str(required)),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "HASHES" in done.stderr
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    "suite", ["agent_protocol/suite", "agent_protocol/inspector", "openid_provider"]
)
def test_every_npm_package_has_a_hash(suite: str) -> None:
    lock = ROOT / "tests/contract" / suite / "package-lock.json"
    packages = json.loads(lock.read_text())["packages"]
    without = [name for name, entry in packages.items() if name and "integrity" not in entry]
    assert packages
    assert without == []
