"""Tests that few modules start programs, and that no module runs text as code."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from agent.wire import routes
from controlplane.agent_protocol.tools.registry import TOOLS
from tests.paths import ROOT

STARTS_PROGRAMS: Final = {
    "agent/adapters/collector_process.py": "the collector, with the kind of report",
    "agent/adapters/service_manager/commands.py": "systemctl and launchctl, for the verb `service`",
    "collectors/shared/run_command.py": "programs of the system, with constant arguments",
}
STARTERS: Final = re.compile(
    r"subprocess\.(run|Popen|call|check_\w+|getoutput)|create_subprocess_\w+|_fork_exec"
    r"|os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*|startfile)"
)
RUNS_TEXT: Final = re.compile(
    r"(?<![.\w])(eval|exec|compile|__import__)\(|shell=|\b(pickle|marshal|shelve|yaml|dill)\b"
)
OPERATOR_CALLS: Final = ("CREATE_REQUEST", "LIST_DEVICES", "DEVICE_DETAIL", "REVOKE")
ACTS_ON_DEVICES: Final = re.compile(
    r"controlplane\.(remote_control|pending_requests|devices\.requests)"
)


def files_with(pattern: re.Pattern[str], *folders: str) -> set[str]:
    """Return the Python files whose code contains the pattern outside of strings and comments."""
    return {path for path, code in _candidates(pattern, folders) if pattern.search(code)}


def _candidates(pattern: re.Pattern[str], folders: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if pattern.search(text):
                yield path.relative_to(ROOT).as_posix(), _code(text)


def _code(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree)


def test_only_three_modules_start_programs() -> None:
    modules = files_with(STARTERS, "agent", "collectors")
    assert modules == STARTS_PROGRAMS.keys()


def test_no_text_is_run_as_code() -> None:
    assert files_with(RUNS_TEXT, "agent", "collectors") == set()


def test_no_tool_of_the_agent_protocol_acts_on_a_device() -> None:
    assert {tool.name for tool in TOOLS.values() if tool.writes} == {"set_catalog_availability"}
    assert files_with(ACTS_ON_DEVICES, "controlplane/agent_protocol") == set()


def test_the_agent_makes_no_call_of_an_operator() -> None:
    files = files_with(re.compile(rf"\b({'|'.join(OPERATOR_CALLS)})\b"), "agent")
    assert files == {"agent/wire/routes.py"}
    assert all(hasattr(routes, name) for name in OPERATOR_CALLS)
