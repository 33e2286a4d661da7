"""Notifies of changed links, addresses and routes (Linux, by rtnetlink groups)."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from collectors.shared.linux.netlink_socket import NETLINK_ROUTE, open_netlink

COALESCE_S: Final = 0.2
"""Changes within this time after a call of ``on_change`` cause one more call."""

_LINK, _IPV4_ADDRESS, _IPV4_ROUTE, _IPV6_ADDRESS, _IPV6_ROUTE = 0x1, 0x10, 0x40, 0x100, 0x400
_GROUPS: Final = _LINK | _IPV4_ADDRESS | _IPV4_ROUTE | _IPV6_ADDRESS | _IPV6_ROUTE
_DATAGRAM_MAX: Final = 65536
_DATAGRAMS_AT_ONCE: Final = 256


class Coalescer:
    """Calls ``on_change`` in the event loop.

    The first change causes a call at once, so that even a short interruption is detected. If more
    changes follow within ``COALESCE_S``, they cause one more call.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_pending = False

    def note_change(self) -> None:
        if self._timer is None:
            self._notify()
        else:
            self._is_pending = True

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _notify(self) -> None:
        self._is_pending = False
        self._timer = self._loop.call_later(COALESCE_S, self._on_timer)
        self._on_change()

    def _on_timer(self) -> None:
        self._timer = None
        if self._is_pending:
            self._notify()


class LinkEvents:
    """Calls ``on_change`` for changes in this network namespace, as `Coalescer` describes."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        """Open the socket. Raises OSError if the platform lacks netlink, or a sandbox denies it."""
        self._coalescer = Coalescer(on_change)
        self._loop = asyncio.get_running_loop()
        self._socket = open_netlink(NETLINK_ROUTE, _GROUPS)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._readable)

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._coalescer.close()

    def _readable(self) -> None:
        """Discard the messages: after a change, all links, addresses and routes are read again.

        An error also counts as a change: ENOBUFS means that the kernel discarded messages.
        """
        with contextlib.suppress(OSError):
            for _ in range(_DATAGRAMS_AT_ONCE):
                self._socket.recv(_DATAGRAM_MAX)
        self._coalescer.note_change()
