"""Reads the queues of CUPS from `lpstat -v`. This is the fallback if CUPS does not answer IPP."""

import re

from collectors.shared.run_command import run_command
from collectors.shared.text import decode

OUTPUT_MAX_BYTES = 256 * 1024
_LINE = re.compile(
    r"(?:用[于於] (?P<zh>\S+) 的\S+|(?P<ja>\S+) のデバイス|(?P<ta>\S+) க்கான சாதனம்"
    r"|\S+ (?P<ka>\S+)-სთვის|\S+ \S+ (?P<any>\S+?))\s?(?::\s|：\s?)\s*"
    r"(?P<uri>(?:[A-Za-z][\w.+-]*:|/)\S.*)"
)
"""Matches a line in all translations of CUPS. It begins with two words and the name of the queue,
except in Chinese, Japanese, Tamil and Georgian."""


def read_lpstat(deadline_s: float) -> dict[str, str] | None:
    """Return the device URI of each queue, or None if lpstat is missing or fails.

    ``deadline_s`` is a time of the monotonic clock.
    """
    try:
        # HOME is not set, so that lpstat does not read the user's client.conf. This file may name a
        # spooler on another machine.
        output = run_command(("lpstat", "-v"), deadline_s, OUTPUT_MAX_BYTES, environ={})
    except (OSError, ValueError):
        return None
    return parse_lpstat(decode(output.data)) if output.exit_code == 0 else None


def parse_lpstat(text: str) -> dict[str, str]:
    """Parse the lines ``device for NAME: URI``. Returns the device URI of each queue.

    The lines may be in any language, because on macOS lpstat uses the language of the system
    settings, not the locale. A path in place of the URI is a local device or a file.
    ``NAME/instance`` is the queue ``NAME`` with other options.
    """
    matches = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    uris: dict[str, str] = {}
    for match in filter(None, matches):
        name = next(filter(None, match.group("zh", "ja", "ta", "ka", "any"))).partition("/")[0]
        uris.setdefault(name, _as_uri(match["uri"].strip()))
    return uris


def _as_uri(device: str) -> str:
    if not device.startswith("/"):
        return device
    path = "/" + device.lstrip("/")  # lpstat prints file:///dev/x as ///dev/x
    if "/usb/" in path:
        return f"usb:{path}"
    is_port = path.startswith("/dev/") and path != "/dev/null"
    return f"serial:{path}" if is_port else f"file:{path}"
