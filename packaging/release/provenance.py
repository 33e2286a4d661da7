"""The provenance of a release: which commit, tools and libraries its files were built from.

An in-toto statement (v1) with a SLSA provenance predicate (v1). SHA256SUMS lists the file of the
statement, so the signature of SHA256SUMS covers it.
Source: https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from release import NOTES, PROVENANCE, SIGNATURE, SUMS, normalize
from release.checksums import digest
from release.clean_root import LISTS, Root, packages_containing
from release.source import Source

BUILD_TYPE: Final = "urn:venue-agent:make-release:v1"
BUILDER: Final = "urn:venue-agent:clean-debian-root:v1"
_LIST_ENTRY: Final = re.compile(
    r"^(?P<name>[\w.-]+)[^=\n]*==(?P<version>[\w.]+)[^\n]*"
    r"(?P<hashes>(?: \\\n +--hash=sha256:\w+)+)$",
    re.MULTILINE,
)
_BUNDLED: Final = re.compile(r"'(/(?:usr/)?lib[^']+)'")


def statement(
    source: Source,
    directory: Path,
    root: Root,
    wheels: Path,
    *,
    bundled: set[str],
    rebuildable: set[str],
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """Return the statement about the files of a release.

    It leaves out the checksums, their signature and the file of the statement.

    Args:
        wheels: the directory of the wheels that were used.
        bundled: the names of the Debian packages whose files are in the built packages.
        rebuildable: the names of the files that were built in the clean root.
        parameters: the parameters of the build, such as its make targets.
    """
    names = sorted({path.name for path in directory.iterdir()} - {SUMS, SIGNATURE, PROVENANCE})
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {
                "name": name,
                "digest": {"sha256": digest(directory / name)},
                "annotations": {"builtInCleanRoot": name in rebuildable},
            }
            for name in names
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"tag": source.tag, **parameters},
                "internalParameters": {
                    "python": root.facts["python"],
                    "debianMirror": root.facts["mirror"],
                    "debianRootCreated": root.facts["created"],
                    "sourceDateEpoch": source.epoch,
                },
                "resolvedDependencies": [
                    {
                        "name": "source",
                        "uri": f"urn:venue-agent:source@refs/tags/{source.tag}",
                        "digest": {"gitCommit": source.commit},
                    },
                    *(_wheel(path) for path in sorted(wheels.glob("*.whl"))),
                    *(_debian(each, bundled) for each in root.facts["packages"]),
                ],
            },
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }


def _wheel(path: Path) -> dict[str, Any]:
    name, version = path.name.split("-")[:2]
    uri = f"pkg:pypi/{normalize(name)}@{version}"
    return {"name": path.name, "uri": uri, "digest": {"sha256": digest(path)}}


def _debian(package: dict[str, str], bundled: set[str]) -> dict[str, Any]:
    return {
        "name": package["name"],
        "uri": _debian_uri(package),
        "digest": {"sha256": package["sha256"]},
        "annotations": {"bundled": package["name"] in bundled},
    }


def _debian_uri(package: dict[str, str]) -> str:
    version = package["version"].replace("+", "%2B")
    return f"pkg:deb/debian/{package['name']}@{version}?arch={package['architecture']}"


def bundled_packages(root: Root, tree: Path) -> set[str]:
    """Return the names of the Debian packages whose files PyInstaller put into a program.

    Args:
        tree: the source after the build, with PyInstaller's tables of contents.
    """
    paths = {
        path
        for table in tree.glob("build/*pyinstaller/*/*.toc")
        for path in _BUNDLED.findall(table.read_text())
    }
    resolved_paths = {str((root.directory / path.lstrip("/")).resolve()) for path in paths}
    paths_in_root = {
        "/" + str(Path(path).relative_to(root.directory.resolve())) for path in resolved_paths
    }
    return packages_containing(root, paths | paths_in_root)


def differences_from_source(directory: Path, source: Source) -> list[str]:
    """Compare the provenance with the files of a release and with its commit.

    Return one line per difference.
    """
    try:
        document = json.loads((directory / PROVENANCE).read_text())
        return list(_differences(document, directory, source))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{PROVENANCE}: cannot be read: {error!r}"]


def _differences(document: dict[str, Any], directory: Path, source: Source) -> Iterator[str]:
    kinds = (document["_type"], document["predicateType"])
    if kinds != ("https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"):
        yield f"{PROVENANCE}: an unknown type of statement: {kinds}"
        return
    digests = {each["name"]: each["digest"]["sha256"] for each in document["subject"]}
    files = {path.name: path for path in directory.iterdir()}
    for name in sorted(files.keys() - digests.keys() - {SUMS, SIGNATURE, PROVENANCE}):
        yield f"{PROVENANCE}: does not describe {name}"
    for name, sha256 in sorted(digests.items()):
        if name not in files:
            yield f"{PROVENANCE}: describes {name}, which is missing"
        elif digest(files[name]) != sha256:
            yield f"{PROVENANCE}: describes a different {name}"
    definition = document["predicate"]["buildDefinition"]
    if definition["buildType"] != BUILD_TYPE:
        yield f"{PROVENANCE}: an unknown type of build: {definition['buildType']}"
    if definition["externalParameters"]["tag"] != source.tag:
        yield f"{PROVENANCE}: is about {definition['externalParameters']['tag']}, not {source.tag}"
    materials = definition["resolvedDependencies"]
    commits = [each["digest"]["gitCommit"] for each in materials if "gitCommit" in each["digest"]]
    if commits != [source.commit]:
        yield f"{PROVENANCE}: names the commit {commits}, but {source.tag} is {source.commit}"
    yield from _wheel_differences(materials, source)
    if (directory / NOTES).is_file() and (directory / NOTES).read_text() != source.notes:
        yield f"{NOTES}: not the section of CHANGELOG.md at {source.tag}"


def _wheel_differences(materials: list[dict[str, Any]], source: Source) -> Iterator[str]:
    """Compare the wheels of a build with the lists of requirements at its commit."""
    allowed: dict[str, str] = {}
    for name in LISTS:
        for entry in _LIST_ENTRY.finditer(source.text(f"requirements/{name}")):
            for sha256 in re.findall(r"sha256:(\w+)", entry["hashes"]):
                allowed[sha256] = f"pkg:pypi/{normalize(entry['name'])}@{entry['version']}"
    for each in materials:
        if (
            each["uri"].startswith("pkg:pypi/")
            and allowed.get(each["digest"]["sha256"]) != each["uri"]
        ):
            yield f"{PROVENANCE}: {each['name']} is not in the requirements of {source.tag}"


def commit_of(directory: Path) -> str:
    """Return the commit that the provenance names. Raises ValueError if it names none."""
    try:
        document = json.loads((directory / PROVENANCE).read_text())
        materials = document["predicate"]["buildDefinition"]["resolvedDependencies"]
        commits = [each["digest"].get("gitCommit") for each in materials]
        return next(str(each) for each in commits if each)
    except (OSError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ValueError(f"{PROVENANCE}: names no commit") from error


def debian_differences(directory: Path, root: Root) -> list[str]:
    """Compare the Debian packages of the root with those that the release was built with."""
    document = json.loads((directory / PROVENANCE).read_text())
    definition = document["predicate"]["buildDefinition"]
    materials = definition["resolvedDependencies"]
    recorded_uris = {each["uri"] for each in materials if each["uri"].startswith("pkg:deb/")}
    current_uris = {_debian_uri(each) for each in root.facts["packages"]}
    created = definition["internalParameters"]["debianRootCreated"]
    snapshot = f"http://snapshot.debian.org/archive/debian/{re.sub('[-:]', '', created)}"
    lines = [f"Debian: this root lacks {each}" for each in sorted(recorded_uris - current_uris)]
    lines += [
        f"Debian: the release was built without {each}"
        for each in sorted(current_uris - recorded_uris)
    ]
    if lines:
        lines.append(f"Debian: to build with the same packages, set MIRROR={snapshot}")
    return lines
