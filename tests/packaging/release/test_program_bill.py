"""The bill of materials of a program names the component of each of its modules."""

import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import h11
import pytest
from release.frozen import top_level_modules

from tests.packaging.release.tiny_release import frozen_program
from tests.packaging.scripts import packaging_script
from tests.paths import ROOT


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    return packaging_script("sbom.py")


def evidence(component: dict[str, Any]) -> list[str]:
    occurrences = component.get("evidence", {}).get("occurrences", ())
    return [occurrence["location"] for occurrence in occurrences]


def test_each_module_belongs_to_one_component(sbom: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "PYZ-00.toc").write_text(
        repr(
            (
                "PYZ-00.pyz",
                [
                    ("agent.cli", str(ROOT / "agent/cli/__init__.py"), "PYMODULE"),
                    ("h11", h11.__file__, "PYMODULE"),
                    ("json", "/usr/lib/python3.11/json/__init__.py", "PYMODULE"),
                ],
            )
        )
    )
    (tmp_path / "COLLECT-00.toc").write_text("([],)")
    packages = sbom.bundled_distributions(sbom.bundled_sources(tmp_path))
    bill = sbom.bill(packages, tmp_path / "venue-agent", "1.2.3", sbom.bundled_modules(tmp_path))
    modules = {each["name"]: evidence(each) for each in bill["components"]}
    assert modules == {"h11": ["h11"], "cpython": ["json"]}
    assert evidence(bill["metadata"]["component"]) == ["agent"]


def test_modules_are_read_from_the_archive_in_a_program() -> None:
    assert top_level_modules(frozen_program("agent.cli", "agent.app", "h11")) == {"agent", "h11"}


def test_an_archive_with_an_entry_of_size_zero_is_refused() -> None:
    program = frozen_program("agent")
    start = program.rindex(b"PYZ.pyz") - struct.calcsize("!IIIIBc")
    with pytest.raises(ValueError, match="an entry is too short"):
        top_level_modules(program[:start] + bytes(4) + program[start + 4 :])


# The last content lacks the 88 bytes at the end of a program that state where the archive is.
@pytest.mark.parametrize("content", [b"", b"\x7fELF", frozen_program("agent")[:-88]])
def test_a_program_without_an_archive_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a program of PyInstaller"):
        top_level_modules(content)
