"""The queues of CUPS as `lpstat -v` lists them: the fallback where IPP is not answered."""

import re
from dataclasses import dataclass

from collectors.shared.run_command import run_command
from collectors.shared.text import decode

OUTPUT_MAX_BYTES = 256 * 1024
_LINE = re.compile(r"device for (\S+): (\S.*)")


@dataclass(frozen=True, slots=True)
class LpstatQueue:
    name: str
    uri: str


def read_lpstat(deadline_s: float) -> tuple[LpstatQueue, ...] | None:
    """Run lpstat until ``deadline_s`` (monotonic); None where it is missing or failed."""
    try:
        # Without HOME, since a person's client.conf may name a spooler on another machine.
        output = run_command(("lpstat", "-v"), deadline_s, OUTPUT_MAX_BYTES, environ={})
    except (OSError, ValueError):
        return None
    return parse_lpstat(decode(output.data)) if output.exit_code == 0 else None


def parse_lpstat(text: str) -> tuple[LpstatQueue, ...]:
    """Parse the English lines ``device for NAME: URI``; a bare path is a local device."""
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return tuple(LpstatQueue(f[1], _as_uri(f[2].strip())) for f in found if f is not None)


def _as_uri(device: str) -> str:
    if not device.startswith("/dev/"):
        return device
    return f"usb:{device}" if "/usb/" in device else f"serial:{device}"
