"""`printers.json`: what this machine's printers were when they last answered."""

import json
import logging
from dataclasses import asdict, dataclass

from agent.adapters.storage.atomic_file import write_atomically
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
from agent.wire.codec import decode_strictly
from agent.wire.validation import ValidationError
from collectors.contract import LearnedPrinter

log = logging.getLogger(__name__)

NAME = "printers.json"
MAX_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class _Content:
    printers: tuple[LearnedPrinter, ...] = ()


class PrinterMemory:
    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._path = state.path / NAME

    def read(self) -> tuple[tuple[LearnedPrinter, ...], str | None]:
        """Return what is known, and in words why it cannot be read; never raises."""
        try:
            content: _Content = decode_strictly(self._state.read(NAME, MAX_BYTES), _Content)
        except FileNotFoundError:
            return (), None
        except (OSError, StateError) as error:
            reason = getattr(error, "strerror", None) or str(error)
        except ValidationError:
            reason = f"{self._path} is damaged; the next report of the daemon writes it anew"
        else:
            return content.printers, None
        return (), f"what earlier reports learned of the printers cannot be read: {reason}"

    def write(self, printers: tuple[LearnedPrinter, ...]) -> None:
        """Replace what is known. Without it reports say less; they are made all the same."""
        content = json.dumps(asdict(_Content(printers)), indent=2).encode()
        try:
            write_atomically(self._path, content + b"\n")
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error.strerror)
