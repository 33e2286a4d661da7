"""Tests that every command of a document works as written, one after the other.

In these tests, `make` only prints the commands that it would run. tests/packaging/verify_bare.py
runs `make demo` and `make test` completely, on a machine that has only Python, make and git.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from typing import Any, Final

import pytest

from agent.cli import main as agent_program
from controlplane.cli.main import build_parser as service_parser
from tests import sizes
from tests.paths import ROOT
from tests.scenario.documents.__main__ import Step, commands_of

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("all-namespaces", "other-user", "systemctl", "curl"),
]
NAMESPACES: Final = ("--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
DOCUMENTS: Final = ("README.md", "docs/agent-protocol.md", "docs/figures.md", "docs/service.md")
IN_MEDIUM: Final = {"docs/agent-protocol.md", "docs/service.md"}
OTHER_CODES: Final = {
    # The agent does not run on the simulated machine, so these commands report a problem.
    "venue-agent status": 2,
    "venue-agent timeline": 2,
    "venue-agent doctor": 1,
    "venue-agent doctor --bundle case.zip": 1,
    # The machine has no print queues, and its configuration has the document's example address.
    "venue-agent check kitchen": 1,
    "venue-agent config check": 2,
}
"""The expected exit codes of the commands whose exit code is not 0."""
IN_A_HOME: Final = "is in a home directory, which the service cannot reach"
"""`service install` prints this if the agent is in a home directory, such as a developer's."""


@cache
def steps_of(document: str) -> list[Step]:
    """Follow a document, and return its steps."""
    # All documents load the same sandbox. README.md loads the whole year that it describes. The
    # other documents load fewer days, because their commands query only new sales: `figures`
    # queries today and the 28 days before.
    days = sizes.amount(medium=5, large=365 if document == "README.md" else 30)
    command = ["unshare", *NAMESPACES, sys.executable, "-m", "tests.scenario.documents", document]
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    result = subprocess.run(
        [*command, "--days", str(days)], capture_output=True, text=True, timeout=900, check=False,
        cwd=ROOT, env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return [Step(**step) for step in json.loads(result.stdout)]


def output_of(document: str, start: str) -> str:
    """Return the output of the last command of a document that begins with ``start``."""
    return [step.output for step in steps_of(document) if step.command.startswith(start)][-1]


@pytest.mark.parametrize("document", sizes.large_except(IN_MEDIUM, DOCUMENTS))
def test_every_command_works_as_written(document: str) -> None:
    failures = {}
    for step in steps_of(document):
        command = step.command.partition("#")[0].strip()
        is_refused = command == "venue-agent service install" and IN_A_HOME in step.errors
        if step.code != OTHER_CODES.get(command, 0) and not is_refused:
            failures[command] = (step.code, step.output[-400:], step.errors[-400:])
        assert "Traceback" not in step.output + step.errors
    assert failures == {}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_of_the_programs_exists(document: str) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / document).read_text(), re.M | re.S)
    commands = [command for block in blocks for command in commands_of(block)]
    assert commands
    for command in commands:
        program, *words = shlex.split(command.partition(" > ")[0], comments=True)
        if program.endswith("venue-agent"):
            agent_program._parser(words).parse_args(words)
        elif program == "venue-control":
            service_parser().parse_args(words)


@pytest.mark.parametrize("document", ["README.md", "docs/agent-protocol.md", "docs/figures.md"])
def test_every_command_within_a_sentence_exists(document: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", (ROOT / document).read_text(), flags=re.M | re.S)
    commands = re.findall(r"`(make [^`]+|venue-\w+ [^`]+)`", prose)
    assert len(commands) >= 3
    for command in commands:
        program, *words = command.split()
        if program == "make":
            subprocess.run(["make", "--dry-run", *words], check=True, capture_output=True, cwd=ROOT)
        elif program == "venue-agent":
            agent_program._parser(words).parse_args(words)
        else:
            service_parser().parse_args(words)


@pytest.mark.large
def test_a_newcomer_needs_one_command_for_the_first_report() -> None:
    first = steps_of("README.md")[0]
    assert first.command.startswith("make demo")
    assert first.output.strip() == ".venv/bin/venue-control demo"


@pytest.mark.large
def test_the_readme_shows_a_sale_and_the_figures() -> None:
    number, *_, total, currency = output_of("README.md", "from controlplane").split()
    assert output_of("README.md", "venue-control sales").splitlines()[1].startswith(number)
    assert total.isdigit()
    assert currency == "AED"
    assert "net until " in output_of("README.md", "venue-control figures")


def test_the_agent_protocol_returns_a_result() -> None:
    reply = json.loads(output_of("docs/agent-protocol.md", "curl"))
    assert reply["result"]["isError"] is False
    assert reply["result"]["structuredContent"]["rows"]


def test_token_exchange_returns_sales_and_its_error_header_matches_the_document() -> None:
    sales: list[Any] = json.loads(output_of("docs/service.md", 'curl -s "'))["items"]
    assert {sale["status"] for sale in sales} == {"completed"}
    error_reply = output_of("docs/service.md", "curl -s -D -")
    head, _, body = error_reply.replace("\r", "").partition("\n\n")
    assert body == ""
    (challenge,) = re.findall(r"^www-authenticate: (.+)$", head, re.MULTILINE)
    description = (ROOT / "docs/service.md").read_text().partition("www-authenticate: ")[2]
    assert challenge == " ".join(description.partition("\n```")[0].split())


def test_the_client_configuration_has_the_url_and_key_of_the_curl_commands() -> None:
    """The header of the client uses the same variable as the curl commands."""
    text = (ROOT / "docs/agent-protocol.md").read_text()
    (block,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (server,) = json.loads(block)["mcpServers"].values()
    commands = text.partition("With curl")[2]
    assert re.search(rf"{re.escape(server['url'])}(?![\w/])", commands)
    assert server["headers"]["Authorization"] == "Bearer ${VENUE_CONTROL_API_KEY}"
    assert "$VENUE_CONTROL_API_KEY" in commands
