"""Checks the output and exit code of every verb in every situation.

Each verb runs as root and as an ordinary user; the verbs in `VERBS_ONLY_AS_USER` run only as an
ordinary user. The expected exit codes come from the table in docs/cli.md. A cell is one verb in one
situation, run by one user. `make test` runs one cell for each verb; together, these cells contain
each situation with each user.
"""

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests import sizes
from tests.paths import ROOT
from tests.scenario.verbs.isolated_machine import (
    BY_HAND,
    CHANGING_VERBS,
    READ_ONLY_VERBS,
    SITUATIONS,
    USERS,
    VERBS_ONLY_AS_USER,
    Cell,
    base_of,
)

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("other-user", "all-namespaces", "systemctl"),
]

NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
DOCUMENT = ROOT / "docs/cli.md"

NO_CONFIGURATION = {
    "root": "there is no configuration at /etc/venue-agent/config.toml:"
    " `venue-agent service install",
    "user": "there is no configuration at /home/till/.config/venue-agent/config.toml or"
    " /etc/venue-agent/config.toml: `sudo venue-agent service install",
}
MESSAGES: Mapping[tuple[str, str], str] = {
    ("unreadable state", "root status"): "start it: `venue-agent service start`",
    ("unreadable state", "root doctor"): "/var/lib/venue-agent/device.json is damaged",
    ("unreadable state", "root history"): "agent.db cannot be read: file is not a database",
    ("unreadable state", "root printers"): "/var/lib/venue-agent/printers.json is damaged",
    ("unreadable state", "user status"): "according to systemd, it does not run",
    ("unreadable state", "user doctor"): "daemon: according to systemd, it does not run",
    ("unreadable state", "user history"): "/var/lib/venue-agent is closed to this user",
    ("unreadable state", "user config check"): "the API key in the file /etc/venue-agent/api-key",
    ("running service", "root status"): "healthy",
    ("running service", "root doctor"): "ok daemon process",
    ("running service", "root history"): "no requests yet",
    ("running service", "root printers"): "no printer is remembered",
    ("running service", "root check kitchen"): "this machine has no printer 'kitchen'",
    ("running service", "root printers forget kitchen"): "Known printers: none",
    ("running service", "root enroll"): "the agent is running and enrolls itself",
    ("running service", "root run"): "another agent (process",
    ("running service", "user status"): "it runs as process",
    ("running service", "user doctor"): "it runs as process",
    ("running service", "user run"): "runs as a user of its own: `sudo venue-agent service start`",
    ("stopped service", "root status"): "start it: `venue-agent service start`",
    ("stopped service", "root doctor"): "the agent does not run; it last wrote its status",
    ("stopped service", "root enroll"): "enrolled before",
    ("stopped service", "user status"): "according to systemd, it does not run",
    ("stopped service", "user doctor"): "start it: `sudo venue-agent service start`",
}  # fmt: skip
"""Texts that certain cells must print. Repeated spaces count as one."""


@pytest.fixture(scope="module")
def cells(selected_parameters: list[dict[str, str]]) -> Mapping[tuple[str, str, str], Cell]:
    """The results of the selected cells, by situation, user and verb.

    Cells with an agent that was started by hand are always included.
    """
    keys = [list(parameters.values()) for parameters in selected_parameters]
    command = ["unshare", *NAMESPACES, sys.executable, "-m", "tests.scenario.verbs"]
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    result = subprocess.run(
        command, input=json.dumps(keys), capture_output=True, text=True, timeout=1200,
        check=False, env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    results = (Cell(**json.loads(line)) for line in result.stdout.splitlines())
    return {(cell.situation, cell.user, cell.verb): cell for cell in results}


def expected_codes() -> dict[tuple[str, str, str], int]:
    """Read the expected exit codes from the table in docs/cli.md.

    The rows of this table are verbs, and its columns are situations. Each cell of the table has two
    codes: "root / user".
    """
    section = (
        DOCUMENT.read_text().partition("## Access rights and exit codes")[2].partition("\n## ")[0]
    )
    lines = section.splitlines()
    head, _, *rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    codes = {}
    for row in rows:
        for verb in re.findall(r"`([^`]+)`", row[0]):
            for situation, pair in zip(head[1:], row[1:], strict=True):
                for user, code in zip(USERS, pair.split("/"), strict=True):
                    codes[situation.strip(), user, verb] = int(code)
    return codes


CODES = expected_codes()


def test_the_table_holds_every_verb_and_every_situation() -> None:
    verbs = {base_of(verb) for verb in (*READ_ONLY_VERBS, *CHANGING_VERBS, *VERBS_ONLY_AS_USER)}
    assert {verb for _, _, verb in CODES} == verbs
    assert {situation for situation, _, _ in CODES} == set(SITUATIONS)


def medium_cells() -> set[tuple[str, str, str]]:
    """Return one cell for each verb, with alternating situations and users."""
    verbs = dict.fromkeys(verb for _, _, verb in CODES)
    turns = itertools.cycle((situation, user) for user in USERS for situation in SITUATIONS)
    return {
        (situation, "user" if verb in VERBS_ONLY_AS_USER else user, verb)
        for verb, (situation, user) in zip(verbs, turns, strict=False)
    }


@pytest.mark.parametrize(
    ("situation", "user", "verb"),
    sizes.large_except(medium_cells(), CODES),
    ids=map(" · ".join, CODES),
)
def test_each_verb_has_the_documented_exit_code_and_message(
    situation: str, user: str, verb: str, cells: Mapping[tuple[str, str, str], Cell]
) -> None:
    key = (situation, user, verb)
    matching_cells = [cell for k, cell in cells.items() if (*k[:2], base_of(k[2])) == key]
    if not matching_cells:
        assert (user, verb in VERBS_ONLY_AS_USER) == ("root", True), (
            "only verbs that are never run as root may be missing"
        )
    for cell in matching_cells:
        words = " ".join((cell.output + cell.errors).split())
        assert cell.code == CODES[key], words
        for forbidden in ("Traceback", "unexpected", "another agent runs", "TypeError"):
            assert forbidden not in words, words
        if cell.code == 3:
            assert re.search("closed to this user|needs root|not visible", words), words
        if "--json" in cell.verb:
            if cell.output:
                json.loads(cell.output)
            continue
        if cell.code == 3:
            assert "`sudo venue-agent " in words
        elif situation == "no configuration" and cell.code == 2:
            assert NO_CONFIGURATION[user] in words
        if cell.code and cell.errors:
            lines = cell.errors.splitlines()
            # The lines of `run` before the last one are its log.
            messages = lines[-1:] if verb == "run" else lines
            assert all(line.startswith("venue-agent: ") for line in messages)
        assert MESSAGES.get((situation, f"{user} {verb}"), "") in words, words


def test_root_never_gets_the_exit_code_for_missing_rights() -> None:
    assert not {key for key, code in CODES.items() if key[1] == "root" and code == 3}


def test_status_uses_the_process_list_to_find_an_agent_started_by_hand(
    cells: Mapping[tuple[str, str, str], Cell],
) -> None:
    status, doctor = cells[BY_HAND, "user", "status"], cells[BY_HAND, "user", "doctor --json"]
    assert (status.code, doctor.code) == (3, 3)
    assert re.search(r"according to the process list, it runs as process \d+", status.output)
    checks = {check["name"]: check for check in json.loads(doctor.output)["checks"]}
    assert checks["daemon"]["status"] == "unseen"
    assert checks["other-agent"]["status"] == "ok", checks["other-agent"]
