"""The queues of CUPS as `lpstat -v` lists them: the fallback where IPP is not answered."""

import re
import subprocess
import time
from dataclasses import dataclass

from collectors.programs import find_program, program_environment

OUTPUT_MAX = 256 * 1024
_LINE = re.compile(r"device for (\S+): (\S.*)")


@dataclass(frozen=True, slots=True)
class LpstatQueue:
    name: str
    uri: str


def read_lpstat(deadline_s: float) -> tuple[LpstatQueue, ...] | None:
    """Run lpstat until ``deadline_s`` (monotonic); None where it is missing or failed."""
    program = find_program("lpstat")
    left_s = deadline_s - time.monotonic()
    if program is None or left_s <= 0:
        return None
    try:
        done = subprocess.run(
            [program, "-v"],
            env=program_environment({}),  # else it is translated
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=left_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return parse_lpstat(done.stdout[:OUTPUT_MAX].decode("utf-8", "replace"))


def parse_lpstat(text: str) -> tuple[LpstatQueue, ...]:
    """Parse the English lines ``device for NAME: URI``; a bare path is a local device."""
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return tuple(LpstatQueue(f[1], _as_uri(f[2].strip())) for f in found if f is not None)


def _as_uri(device: str) -> str:
    if not device.startswith("/dev/"):
        return device
    return f"usb:{device}" if "/usb/" in device else f"serial:{device}"
