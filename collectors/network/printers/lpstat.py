"""The queues of CUPS as `lpstat -v` lists them: the fallback where IPP is not answered."""

import re

from collectors.shared.run_command import run_command
from collectors.shared.text import decode

OUTPUT_MAX_BYTES = 256 * 1024
_LINE = re.compile(
    r"(?:用[于於] (\S+) 的\S+|\S+ \S+ (\S+?)|(\S+) のデバイス)\s?(?::\s|：\s?)\s*"
    r"((?:[A-Za-z][\w.+-]*:|/)\S.*)"
)
"""A line in the translations of CUPS: two words and the queue, but in Chinese and Japanese."""


def read_lpstat(deadline_s: float) -> dict[str, str] | None:
    """Return the device URI of each queue; None if lpstat is missing or fails.

    ``deadline_s`` is on the monotonic clock.
    """
    try:
        # Without HOME, since a user's client.conf may name a spooler on another machine.
        output = run_command(("lpstat", "-v"), deadline_s, OUTPUT_MAX_BYTES, environ={})
    except (OSError, ValueError):
        return None
    return parse_lpstat(decode(output.data)) if output.exit_code == 0 else None


def parse_lpstat(text: str) -> dict[str, str]:
    """Parse the lines ``device for NAME: URI`` of any language; a bare path is a local device.

    On a Mac CUPS uses the language of its settings, not the locale. ``NAME/instance``
    is the same queue with other options.
    """
    matches = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    uris: dict[str, str] = {}
    for each in filter(None, matches):
        name = (each[1] or each[2] or each[3]).partition("/")[0]
        uris.setdefault(name, _as_uri(each[4].strip()))
    return uris


def _as_uri(device: str) -> str:
    if not device.startswith("/"):
        return device
    path = "/" + device.lstrip("/")  # of file:///dev/x all but the scheme is shown
    if "/usb/" in path:
        return f"usb:{path}"
    is_port = path.startswith("/dev/") and path != "/dev/null"
    return f"serial:{path}" if is_port else f"file:{path}"
