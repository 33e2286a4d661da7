"""The paths of this checkout and of the captured inputs of its tests."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FIXTURES: Final = ROOT / "tests" / "fixtures"
