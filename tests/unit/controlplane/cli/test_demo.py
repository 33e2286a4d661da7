"""Tests of the errors of `venue-control demo` when a demo cannot run.

These tests run no demo: `make demo` does.
"""

from pathlib import Path

import pytest

from controlplane.cli.main import main
from tests.unit.controlplane.cli.without_library import run_without


@pytest.mark.medium
@pytest.mark.parametrize("library", ["sqlalchemy.exc", "starlette.applications", "uvicorn"])
def test_demo_without_the_service_libraries_names_the_package_and_writes_nothing(
    library: str, tmp_path: Path
) -> None:
    demo_directory = tmp_path / "demo"
    result = run_without(library, "demo", "--dir", str(demo_directory))
    assert result.returncode == 1
    assert "pip install 'venue-agent[controlplane]'" in result.stderr
    assert not demo_directory.exists()


def test_demo_prints_one_line_if_the_directory_cannot_be_created(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--dir", "/dev/null/demo"]) == 1
    assert (
        capsys.readouterr().err == "venue-control: cannot create /dev/null/demo: Not a directory\n"
    )
