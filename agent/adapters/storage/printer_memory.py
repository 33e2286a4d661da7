"""`printers.json`: the last known details of this machine's printers and the watched devices."""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict

from agent.adapters.failpoints import Failpoint, passing
from agent.adapters.storage.atomic_file import write_atomically
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
from agent.rules.learned_printers import NOTHING_LEARNED, RememberedPrinters
from agent.wire.codec import decode_strictly
from agent.wire.validation import ValidationError

log = logging.getLogger(__name__)

NAME = "printers.json"
MAX_BYTES = 4_000_000


class PrinterMemory:
    """Reads and writes `printers.json`."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._path = state.path / NAME

    def load(self) -> tuple[RememberedPrinters, str | None]:
        """Return the stored details and None.

        If there is no file, the details are empty. If the file cannot be read, return empty
        details, and a sentence that a report lists among its limitations. A damaged file is
        quarantined.
        """
        return self._load(if_damaged=self._quarantine)

    def peek(self) -> tuple[RememberedPrinters, str | None]:
        """Return what `load` returns, but leave a damaged file where it is."""
        return self._load(if_damaged=lambda: "")

    def _load(self, if_damaged: Callable[[], str]) -> tuple[RememberedPrinters, str | None]:
        """Read the file. For a damaged file, ``if_damaged`` returns the end of the message."""
        try:
            return decode_strictly(self._state.read(NAME, MAX_BYTES), RememberedPrinters), None
        except FileNotFoundError:
            return NOTHING_LEARNED, None
        except ValidationError:
            reason = f"{self._path} is damaged{if_damaged()}"
        except (OSError, StateError) as error:
            reason = getattr(error, "strerror", None) or str(error)
        problem = f"the details of printers from earlier reports cannot be read: {reason}"
        return NOTHING_LEARNED, problem

    def _quarantine(self) -> str:
        log.error("%s cannot be read and is quarantined", self._path)
        try:
            return f" and was moved to {self._state.quarantine_file(self._path)}"
        except (OSError, StateError) as error:
            return f", and cannot be quarantined: {error}"

    def write(self, memory: RememberedPrinters) -> bool:
        """Replace the stored details. Return whether this succeeded.

        A failure raises no error, because it only makes later reports less detailed.
        """
        content = json.dumps(asdict(memory), indent=2).encode()
        try:
            with passing(Failpoint.PRINTERS_WRITTEN):
                write_atomically(self._path, content + b"\n")
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error.strerror)
            return False
        return True
