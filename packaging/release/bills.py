"""The bill of materials of each package of a release, as CycloneDX 1.6.

packaging/sbom.py lists the libraries of a program while it is built. This module adds the package
itself and every file in it with its hash, so that the bill can be compared with the package later.
Source: https://cyclonedx.org/docs/1.6/json/
"""

import email
import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from release import BILL_SUFFIX, normalize
from release.checksums import digest
from release.contents import Contents, can_be_read, contents, digests
from release.frozen import top_level_modules

Bill = dict[str, Any]

_NAMESPACE: Final = uuid.UUID("6f3c2a52-6b0e-4a38-9b6c-0d6b8a1f5f11")
_IMAGE: Final = re.compile(r"^FROM (\S+)", re.MULTILINE)
_REQUIRED: Final = re.compile(r"([\w.-]+)[^;]*(?:; (.*))?")
_FOR_DEVELOPERS: Final = re.compile(r"extra == ['\"](?:dev|package)['\"]")
CONTAINER: Final = "Containerfile"


def write_bill(package: Path, program_bill: Bill | None, version: str, epoch: int) -> None:
    """Write the bill of materials beside the package.

    Args:
        program_bill: the bill that packaging/sbom.py wrote for the program in the package, if any.
        epoch: the time of the release's commit in seconds since 1970.
    """
    bill = program_bill or new_bill(package.name, package.name, version, epoch)
    bill["metadata"]["component"]["hashes"] = hashes(digest(package))
    if package.name == CONTAINER:
        bill["components"] += _images(package.read_text())
    elif can_be_read(package.name):
        files = contents(package)
        bill["components"] += _requirements(files)
        bill["components"] += [_file(name, each) for name, each in sorted(digests(files).items())]
    bill["serialNumber"] = serial_number([bill["metadata"], bill["components"]])
    path = package.with_name(package.name + BILL_SUFFIX)
    path.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")


def differences_from_bill(package: Path) -> list[str]:
    """Compare a package with its bill of materials. Return one line per difference."""
    name = package.name + BILL_SUFFIX
    path = package.with_name(name)
    if not path.is_file():
        return [f"{name}: missing"]
    try:
        bill = json.loads(path.read_text())
        components = bill["components"]
        lines = []
        if bill["metadata"]["component"]["hashes"] != hashes(digest(package)):
            lines.append(f"{name}: is about a different {package.name}")
        if package.name == CONTAINER:
            listed_images = [each for each in components if each["type"] == "container"]
            if listed_images != _images(package.read_text()):
                lines.append(f"{name}: lists different images")
        elif can_be_read(package.name):
            lines += sorted(_differences(name, bill, contents(package)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{name}: cannot be compared with {package.name}: {error!r}"]
    return lines


def _differences(name: str, bill: Bill, files: Contents) -> Iterator[str]:
    actual_digests = digests(files)
    components = bill["components"]
    listed_digests = {
        each["name"]: each["hashes"][0]["content"] for each in components if each["type"] == "file"
    }
    for path in listed_digests.keys() - actual_digests:
        yield f"{name}: lists {path}, which the package lacks"
    for path in actual_digests.keys() - listed_digests:
        yield f"{name}: does not list {path}"
    for path in listed_digests.keys() & actual_digests:
        if listed_digests[path] != actual_digests[path]:
            yield f"{name}: lists {path} with a different hash"
    digests_in_package = set(actual_digests.values())
    libraries = [each for each in components if each["type"] != "file"]
    for each in libraries:
        if "hashes" in each and each["hashes"][0]["content"] not in digests_in_package:
            library = each["name"]
            yield f"{name}: lists {library}, which the package lacks or has with different content"
    yield from _module_differences(name, [bill["metadata"]["component"], *libraries], files)
    required_refs = {each["bom-ref"] for each in _requirements(files)}
    if not required_refs <= {each["bom-ref"] for each in libraries}:
        yield f"{name}: does not list every library that the package requires"


def _module_differences(name: str, components: list[Bill], files: Contents) -> Iterator[str]:
    """Compare the modules in the program with the components that list them as evidence."""
    listed_modules = {
        occurrence["location"]
        for component in components
        for occurrence in component.get("evidence", {}).get("occurrences", ())
    }
    programs = [f"usr/lib/{each}/{each}" for each in ("venue-agent", "venue-control")]
    modules = {
        module for path in programs if path in files for module in top_level_modules(files[path])
    }
    for module in modules - listed_modules:
        yield f"{name}: no component has the module {module}"
    for module in listed_modules - modules:
        yield f"{name}: lists the module {module}, which the package lacks"


def new_bill(reference: str, name: str, version: str, epoch: int) -> Bill:
    """Return a bill without components and without a serial number.

    ``reference`` identifies the application ``name`` in the bill.
    """
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": name,
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [],
    }


def serial_number(content: Any) -> str:
    """Return a serial number that depends only on ``content``."""
    return f"urn:uuid:{uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))}"


def hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]


def _file(name: str, sha256: str) -> Bill:
    return {"type": "file", "bom-ref": f"file:/{name}", "name": name, "hashes": hashes(sha256)}


def _images(text: str) -> list[Bill]:
    return [
        {"type": "container", "bom-ref": f"image:{image}", "name": image}
        for image in _IMAGE.findall(text)
    ]


def _requirements(files: Contents) -> list[Bill]:
    """Return the libraries that a wheel or a source package requires but does not contain."""
    for name, content in sorted(files.items()):
        if name.endswith((".dist-info/METADATA", "/PKG-INFO")):
            metadata = email.message_from_bytes(content)
            lines = metadata.get_all("Requires-Dist") or []
            return _libraries([line for line in lines if not _FOR_DEVELOPERS.search(line)])
    return []


def _libraries(requirements: list[str]) -> list[Bill]:
    """Return a component for each line of Requires-Dist. Libraries of extras are optional."""
    components: dict[str, Bill] = {}
    for line in requirements:
        match = _REQUIRED.match(line)
        name = normalize(match[1]) if match else line
        digest_of_line = hashlib.sha256(line.encode()).hexdigest()[:12]
        reference = f"pkg:pypi/{name}#{digest_of_line}"
        components[reference] = {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "purl": f"pkg:pypi/{name}",
            "scope": "optional" if match and "extra" in (match[2] or "") else "required",
            "properties": [{"name": "requirement", "value": line}],
        }
    return list(components.values())
