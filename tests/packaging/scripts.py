"""Loads the scripts of packaging/.

They cannot be imported by name, because `packaging` is the name of a library.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tests.paths import ROOT

PACKAGING = ROOT / "packaging"


def packaging_script(path: str) -> ModuleType:
    """Load a script. ``path`` is relative to packaging/."""
    name = f"venue_packaging_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, PACKAGING / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # the dataclass decorator looks up the module by its name
    spec.loader.exec_module(loaded)
    return loaded
