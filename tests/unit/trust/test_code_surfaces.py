"""Tests that few modules start programs, and that no module runs text as code."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from agent.wire import routes
from controlplane.agent_protocol.tools.registry import TOOLS
from tests.paths import ROOT

MODULES_THAT_START_PROGRAMS: Final = {
    "agent/adapters/collector_process.py": "the collector, with the kind of report",
    "agent/adapters/service_manager/commands.py": "systemctl and launchctl, for the verb `service`",
    "collectors/shared/run_command.py": "programs of the system, with constant arguments",
}
"""Each module, with the programs that it starts."""
PROGRAM_START: Final = re.compile(
    r"subprocess\.(run|Popen|call|check_\w+|getoutput)|create_subprocess_\w+|_fork_exec"
    r"|os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*|startfile)"
)
TEXT_RUN_AS_CODE: Final = re.compile(
    r"(?<![.\w])(eval|exec|compile|__import__)\(|shell=|\b(pickle|marshal|shelve|yaml|dill)\b"
)
OPERATOR_CALLS: Final = ("CREATE_REQUEST", "LIST_DEVICES", "DEVICE_DETAIL", "REVOKE")
DEVICE_CODE: Final = re.compile(
    r"controlplane\.(remote_control|pending_requests|devices\.requests)"
)


def files_with(pattern: re.Pattern[str], *folders: str) -> set[str]:
    """Return the Python files whose code contains the pattern outside of strings and comments."""
    return {path for path, code in _candidates(pattern, folders) if pattern.search(code)}


def _candidates(pattern: re.Pattern[str], folders: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the path and the code of the files whose text contains the pattern."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if pattern.search(text):
                yield path.relative_to(ROOT).as_posix(), _without_strings_and_comments(text)


def _without_strings_and_comments(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree)


def test_only_three_modules_start_programs() -> None:
    modules = files_with(PROGRAM_START, "agent", "collectors")
    assert modules == MODULES_THAT_START_PROGRAMS.keys()


def test_no_text_is_run_as_code() -> None:
    assert files_with(TEXT_RUN_AS_CODE, "agent", "collectors") == set()


def test_no_tool_of_the_agent_protocol_acts_on_a_device() -> None:
    assert {tool.name for tool in TOOLS.values() if tool.writes} == {"set_catalog_availability"}
    assert files_with(DEVICE_CODE, "controlplane/agent_protocol") == set()


def test_the_agent_makes_no_call_of_an_operator() -> None:
    files = files_with(re.compile(rf"\b({'|'.join(OPERATOR_CALLS)})\b"), "agent")
    assert files == {"agent/wire/routes.py"}
    assert all(hasattr(routes, name) for name in OPERATOR_CALLS)
