"""Reads the print queues, the kiosk's page and the watched devices, without a child process.

The module that reads the queues, the page or the devices is imported only if it is needed.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent.adapters.machine import CUPS, thermal_throttles
from agent.config.model import LocalConfig
from agent.rules.connectivity.local_faults import Key, LocalReading, LocalState
from agent.wire.payloads.history import Cause
from collectors.shared.addresses import Network

CERTIFICATE: Final = "certs/0"
"""CUPS creates this file when it starts, and removes it when it ends."""


class SystemLocalSensors:
    """Reads the queues, the page and the devices for ``agent.rules.connectivity.local_faults``.

    Args:
        networks: returns the networks of this machine.
        cups: the folder with the socket of CUPS.
    """

    def __init__(
        self,
        config: LocalConfig,
        networks: Callable[[], tuple[Network, ...]],
        cups: Path = CUPS,
    ) -> None:
        self._is_application_enabled = config.application.enabled
        self._kiosk_url = config.application.kiosk_debug_url if self._is_application_enabled else ""
        self._cups = cups
        self._devices = None
        if config.watched_devices and sys.platform in ("linux", "win32"):
            from agent.adapters.connectivity.watched_devices import WatchedDevices

            network = config.network
            self._devices = WatchedDevices(
                config.watched_devices,
                networks,
                network.exclude,
                sends_nothing=network.device_only,
            )

    async def read(self) -> LocalReading:
        """Return the state of queues, page and devices within about three seconds. Never raises."""
        states: dict[Key, LocalState] = {}
        complete: set[Cause] = set()
        queues = await self._queues() if self._is_application_enabled else None
        if queues is not None:
            complete.add("queue-stopped")
            states.update({("queue-stopped", name): state for name, state in queues.items()})
        if self._kiosk_url:
            from agent.adapters.connectivity.kiosk_page import read_page_fault

            states["page-missing", "kiosk"] = LocalState(await read_page_fault(self._kiosk_url))
        devices = self._devices.step() if self._devices else LocalReading()
        return LocalReading(
            states={**states, **devices.states},
            complete_causes=frozenset(complete),
            events=devices.events,
            throttle_count=thermal_throttles(),
            is_pending=self._devices is not None and self._devices.is_pending,
        )

    async def _queues(self) -> dict[str, LocalState] | None:
        """Return the state of each print queue; None if it is unknown.

        A connection to the socket of CUPS makes systemd start CUPS. Therefore the socket is used
        only while CUPS runs. A CUPS that does not run has no jobs to print.
        """
        if sys.platform == "win32":
            from agent.adapters.connectivity.print_queues_windows import read_queues

            return read_queues()
        if not (self._cups / CERTIFICATE).exists():
            return None
        from agent.adapters.connectivity.print_queues import query_queues

        return await query_queues(self._cups / "cups.sock")
