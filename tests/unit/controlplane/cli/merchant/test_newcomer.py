"""Tests of the commands and the code in the README's section about sales figures.

tests/scenario/documents also runs the commands and the code, in the order of the README.
"""

import os
import re
import shlex
import subprocess
import sys

import pytest

from controlplane.cli.main import build_parser
from controlplane.client.connection import DEFAULT_URL
from tests.paths import ROOT
from tests.unit.controlplane.cli.merchant.conftest import SandboxMerchant
from tests.unit.controlplane.cli.running_fleet import TIMEOUT_S

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]
LINES = 5


def block(language: str) -> str:
    """Return the first code block of a language in the README's section about sales figures."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    part = readme.partition("\n## Sales figures\n")[2].partition("\n## ")[0]
    return str(re.findall(rf"```{language}\n(.*?)```", part, re.DOTALL)[0])


def test_the_readme_starts_a_sandbox_service_with_two_commands() -> None:
    lines = [shlex.split(line, comments=True) for line in block("sh").splitlines()]
    commands = [words for words in lines if words[0] != "."]
    assert [words[0] for words in commands] == ["venue-control"] * 2
    load_options, serve_options = (
        build_parser().parse_args(" ".join(words[1:]).partition(" > ")[0].split())
        for words in commands
    )
    assert (load_options.function, load_options.days, serve_options.function) == (
        "sandbox:load",
        365,
        "serve:run",
    )
    assert f"http://{serve_options.host}:{serve_options.port}" == DEFAULT_URL


def test_the_documented_five_lines_print_a_sale(sandbox: SandboxMerchant) -> None:
    lines = block("python")
    assert len(lines.splitlines()) == LINES
    result = subprocess.run(
        [sys.executable, "-c", lines],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=ROOT,
        env=os.environ | sandbox.environment,
    )
    assert result.returncode == 0, result.stderr
    number, *_, total, currency = result.stdout.split()
    assert sandbox.query_number(f"SELECT total FROM sales WHERE number = '{number}'") == int(total)
    assert currency == "AED"
