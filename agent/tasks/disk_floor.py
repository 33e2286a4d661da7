"""Skips scheduled reports while the disk is nearly full, to keep space for requested reports."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from agent.adapters.storage.state import StateDirectory
from agent.rules.connectivity.events import DISK_FLOOR_BYTES
from agent.tasks.health_board import HealthBoard
from agent.wire.vocabulary import Kind

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class DiskFloor:
    """Starts each scheduled report when it is due, unless the disk is nearly full."""

    state: StateDirectory
    health: HealthBoard
    start_report: Callable[[Kind], None]
    skipped: int = 0

    def start_or_skip(self, kind: Kind) -> None:
        """Start a scheduled report of ``kind``, or skip it."""
        free = self.state.free_bytes()
        if free >= DISK_FLOOR_BYTES:
            self.health.clear({"disk-scarce"})
            self.start_report(kind)
            return
        self.skipped += 1
        log.warning("the scheduled %s report is skipped: the disk is nearly full", kind)
        free_space = f"{free // 2**20} MiB are free"
        self.health.set("disk-scarce", f"{free_space}, scheduled reports skipped: {self.skipped}")
