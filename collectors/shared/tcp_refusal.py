"""Makes Windows report a refused TCP connection at once, or returns how long to wait for it.

By default, Windows repeats the SYN after each refusal, and reports the refusal after two seconds.
With a shorter wait, a port that refuses connections would count as silent.
"""

import socket
import struct
import sys
from typing import Any, Final

REFUSED_AFTER_S: Final = 2.5
"""How long to wait on Windows for a connection that may be refused."""
_SIO_TCP_INITIAL_RTO: Final = 0x9800_0011
_NO_SYN_RETRANSMISSIONS: Final = struct.pack("<HBx", 0xFFFF, 0xFE)
"""TCP_INITIAL_RTO_PARAMETERS (mstcpip.h): the usual round-trip time, and no repetition of the SYN.
Windows 10 1709 and newer know the second value."""


def refusal_wait_s(usual_s: float, platform: str = sys.platform) -> float:
    """Return how long to wait for a connection: ``usual_s``, or longer if the system needs it."""
    return max(usual_s, REFUSED_AFTER_S) if platform == "win32" else usual_s


def report_refusal_at_once(connection: socket.socket, winsock: Any = None) -> None:
    """Make Windows report a refusal at once. Then Windows sends the SYN only once, so the caller
    has to repeat a connection that gets no answer.

    Older versions of Windows ignore this. Other systems always report it at once.
    """
    if sys.platform == "win32":
        import ctypes  # the idle daemon of other systems does not need it

        library = winsock or ctypes.windll.ws2_32  # loaded once, not for each connection
        returned = ctypes.c_uint32()
        library.WSAIoctl(
            ctypes.c_size_t(connection.fileno()), ctypes.c_uint32(_SIO_TCP_INITIAL_RTO),
            _NO_SYN_RETRANSMISSIONS, len(_NO_SYN_RETRANSMISSIONS), None, 0,
            ctypes.byref(returned), None, None,
        )  # fmt: skip
