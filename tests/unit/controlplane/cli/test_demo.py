"""`venue-control demo` where it cannot be played; `make demo` plays it."""

import sys
from pathlib import Path

import pytest

from controlplane.cli.main import main


@pytest.mark.parametrize("library", ["sqlalchemy.exc", "starlette.applications", "uvicorn"])
def test_without_the_service_it_says_what_to_install_and_writes_nothing(
    library: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in sys.modules if name.startswith("controlplane.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    home = tmp_path / "demo"
    assert main(["demo", "--dir", str(home)]) == 1
    assert "pip install 'venue-agent[controlplane]'" in capsys.readouterr().err
    assert not home.exists()


def test_a_place_that_cannot_be_made_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--dir", "/dev/null/demo"]) == 1
    assert capsys.readouterr().err == "venue-control: cannot make /dev/null/demo: Not a directory\n"
