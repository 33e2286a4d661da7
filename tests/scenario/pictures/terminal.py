"""Takes pictures of a command's output on a terminal, as SVG."""

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

FONTS: Final = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
LIGHT: Final = TerminalTheme(
    (255, 255, 255),
    (40, 40, 40),
    [(0, 0, 0), (190, 0, 0), (0, 120, 0), (140, 90, 0), (0, 60, 190), (140, 0, 140),
     (0, 120, 130), (200, 200, 200)],
    [(110, 110, 110), (210, 0, 0), (0, 140, 0), (160, 110, 0), (0, 80, 220), (170, 0, 170),
     (0, 140, 150), (255, 255, 255)],
)  # fmt: skip
THEMES: Final[Mapping[str, TerminalTheme]] = {"dark": SVG_EXPORT_THEME, "light": LIGHT}

SVG: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: FONTS; font-size: {char_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
""".replace("FONTS", FONTS)  # the library's default format downloads a font


def run_on_terminal(
    command: Sequence[str], columns: int, environment: Mapping[str, str], *, with_errors: bool
) -> str:
    """Run a command on a terminal; return its output with ANSI sequences."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
    env = {**environment, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    env.pop("NO_COLOR", None)
    errors = subprocess.STDOUT if with_errors else subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=follower, stderr=errors, env=env
    ) as child:
        os.close(follower)
        parts = []
        with contextlib.suppress(OSError):  # EIO: the command has closed its end
            while part := os.read(leader, 65536):
                parts.append(part)
        child.wait(timeout=120)
    os.close(leader)
    return b"".join(parts).decode().replace("\r\n", "\n")


def picture(text: str, title: str, columns: int, theme: TerminalTheme, lines_max: int = 0) -> str:
    """Return an SVG of a text with ANSI codes, cut to ``lines_max`` lines unless that is 0."""
    lines = text.rstrip("\n").split("\n")
    if lines_max and len(lines) > lines_max:
        lines = [*lines[:lines_max], "\x1b[2m…\x1b[0m"]
    console = Console(
        width=columns, record=True, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=False)
    return console.export_svg(title=title, theme=theme, code_format=SVG, unique_id="t")
