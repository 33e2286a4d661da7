"""Leaves scheduled reports out while the disk is nearly full: the room left is for requests."""

import logging
from collections.abc import Callable
from typing import Final

from agent.adapters.storage.state import StateDirectory
from agent.tasks.health_board import HealthBoard
from agent.wire.vocabulary import Kind

log = logging.getLogger(__name__)

DISK_FLOOR_BYTES: Final = 50 * 2**20


class DiskFloor:
    """``want_report`` is called for each scheduled report there is room for."""

    def __init__(
        self, state: StateDirectory, health: HealthBoard, want_report: Callable[[Kind], None]
    ) -> None:
        self._state = state
        self._health = health
        self._want_report = want_report
        self.left_out = 0

    def want(self, kind: Kind) -> None:
        """Want a scheduled report of ``kind``, if there is room."""
        free = self._state.free_bytes()
        if free >= DISK_FLOOR_BYTES:
            self._health.clear({"disk-scarce"})
            self._want_report(kind)
            return
        self.left_out += 1
        log.warning("the scheduled %s report is left out: the disk is nearly full", kind)
        room = f"{free // 2**20} MiB are free"
        self._health.set("disk-scarce", f"{room}, {self.left_out} scheduled reports left out")
