"""Creates the software bill of materials of a packaged build, as CycloneDX 1.6.

The bill lists the actual content of the build: the Python distributions whose files it contains,
the npm packages of the console, the Python interpreter, and each native library with its hash.

Usage: python packaging/sbom.py PYINSTALLER_WORK_DIR ONEDIR > NAME.cdx.json
The last component of ONEDIR is the name of the program.
Source: https://cyclonedx.org/docs/1.6/json/
"""

import ast
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from release import normalize
from release.bills import hashes, new_bill, serial_number
from release.checksums import digest

from agent import __version__

ROOT = Path(__file__).resolve().parents[1]
VENDORED = re.compile(r"npmjs\.com/package/([\w@/-]+)\) (\d[\w.-]+\d)")
"""Matches the name and version of an npm package in viewer_files/README.md."""


def bundled_sources(work_dir: Path) -> frozenset[Path]:
    """Return the source files of the build, according to PyInstaller's tables of contents."""
    entries = (*_table(work_dir, "PYZ-00.toc"), *_table(work_dir, "COLLECT-00.toc"))
    return frozenset(Path(source) for _, source, _ in entries)


def bundled_modules(work_dir: Path) -> dict[str, Path]:
    """Return a source file of each top-level module in the build's archive of modules."""
    return {
        name.partition(".")[0]: Path(source) for name, source, _ in _table(work_dir, "PYZ-00.toc")
    }


def _table(work_dir: Path, name: str) -> Iterator[tuple[str, str, str]]:
    return _entries(ast.literal_eval((work_dir / name).read_text()))


def _entries(value: Any) -> Iterator[tuple[str, str, str]]:
    """Yield all rows (name, source, kind) of a nested table of contents."""
    if isinstance(value, tuple) and len(value) == 3 and all(isinstance(x, str) for x in value):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _entries(inner)


def bundled_distributions(sources: frozenset[Path]) -> tuple[Distribution, ...]:
    """Return the installed distributions that contain one of ``sources``, sorted by name."""
    bundled = {}
    for distribution in importlib.metadata.distributions():
        files = (Path(str(file.locate())) for file in distribution.files or ())
        # Files in dist-info are ignored, because PyInstaller adds them for its hooks.
        if any(file in sources and ".dist-info" not in str(file) for file in files):
            bundled[distribution.name.lower()] = distribution
    return tuple(bundled[name] for name in sorted(bundled))


def bill(
    distributions: Iterable[Distribution],
    onedir: Path,
    version: str,
    modules: Mapping[str, Path] | None = None,
) -> dict[str, Any]:
    """Return the CycloneDX document. The same input creates the same document and serial number.

    Args:
        modules: the source file of each top-level module of the program, if it has an archive of
            modules. Each module is listed in the ``evidence`` of its component.
    """
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    packages = tuple(distributions)
    components = [_component(each) for each in packages]
    components.append(_interpreter())
    components.extend(_native_libraries(onedir))
    components.extend(_vendored(onedir))
    document = new_bill(f"{onedir.name}@{version}", onedir.name, version, epoch)
    application = document["metadata"]["component"]
    _add_evidence([*components, application], packages, modules or {})
    document["serialNumber"] = serial_number(components)
    document["components"] = components
    document["dependencies"] = _dependencies(packages, application["bom-ref"])
    return document


def _add_evidence(
    components: list[dict[str, Any]], packages: Iterable[Distribution], modules: Mapping[str, Path]
) -> None:
    """Add to each component the names of its top-level modules.

    Modules that belong to no distribution are of Python itself or of the application.
    """
    owners = {
        str(file.locate()): _ref(package) for package in packages for file in package.files or ()
    }
    own_names = {path.name for path in ROOT.iterdir()}
    names_by_owner: dict[str, list[str]] = defaultdict(list)
    for name, source in modules.items():
        other_owner = "application" if name in own_names else "platform"
        names_by_owner[owners.get(str(source), other_owner)].append(name)
    for component in components:
        names = names_by_owner[component["bom-ref"]] + names_by_owner[component["type"]]
        if names:
            component["evidence"] = {"occurrences": [{"location": name} for name in sorted(names)]}


def _component(distribution: Distribution) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _ref(distribution),
        "name": distribution.name,
        "version": distribution.version,
        "purl": _ref(distribution),
    }
    expression = distribution.metadata.get("License-Expression")
    if expression:
        component["licenses"] = [{"expression": expression}]
    elif (text := distribution.metadata.get("License", "")) and len(text) < 60:
        component["licenses"] = [{"license": {"name": text}}]
    return component


def _ref(distribution: Distribution) -> str:
    return f"pkg:pypi/{normalize(distribution.name)}@{distribution.version}"


def _interpreter() -> dict[str, Any]:
    version = platform.python_version()
    return {
        "type": "platform",
        "bom-ref": f"pkg:generic/cpython@{version}",
        "name": "cpython",
        "version": version,
        "purl": f"pkg:generic/cpython@{version}",
        "licenses": [{"license": {"id": "Python-2.0"}}],
    }


def _native_libraries(onedir: Path) -> Iterator[dict[str, Any]]:
    """Yield the shared libraries of the build, each with its hash."""
    for file in sorted((onedir / "_internal").glob("lib*.so*")):
        yield {
            "type": "library",
            "bom-ref": f"file:{file.name}",
            "name": file.name,
            "hashes": hashes(digest(file)),
        }


def _vendored(onedir: Path) -> Iterator[dict[str, Any]]:
    """Yield the npm packages whose files are part of the service, as viewer_files/README.md lists
    them.
    """
    for page in sorted((onedir / "_internal").glob("controlplane/**/viewer_files/README.md")):
        for name, version in VENDORED.findall(page.read_text(encoding="utf-8")):
            yield {
                "type": "library",
                "bom-ref": f"pkg:npm/{name}@{version}",
                "name": name,
                "version": version,
                "purl": f"pkg:npm/{name}@{version}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }


def _dependencies(packages: tuple[Distribution, ...], root: str) -> list[dict[str, Any]]:
    refs = {normalize(each.name): _ref(each) for each in packages}
    rows: list[dict[str, Any]] = [{"ref": root, "dependsOn": sorted(refs.values())}]
    for each in packages:
        names = {
            normalize(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in each.requires or ()
        }
        rows.append({"ref": _ref(each), "dependsOn": sorted(refs[n] for n in names if n in refs)})
    return rows


def main() -> int:
    work_dir, onedir = Path(sys.argv[1]), Path(sys.argv[2])
    distributions = bundled_distributions(bundled_sources(work_dir))
    document = bill(distributions, onedir, __version__, bundled_modules(work_dir))
    sys.stdout.write(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
