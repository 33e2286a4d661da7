"""Tests that control characters in the service's texts never reach a terminal."""

import json
import socket
from pathlib import Path

import pytest

from agent.cli.main import run_command
from agent.errors import ServiceError, ServiceUnavailable
from agent.rules.command_frames import parse_frame
from agent.rules.health import CONDITIONS
from agent.tasks.health_board import HealthBoard
from agent.wire.controls import without_controls
from agent.wire.sd_notify import Notifier
from tests.fakes.fake_clock import FakeClock

HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202eevil\u2066 \x00\u2028\nSTATUS=forged"
CONTROL_CHARACTERS = set("\x1b\x07\x9b\x00\u202e\u2066\u2028\n")


def test_control_characters_are_removed() -> None:
    assert not set(without_controls(HOSTILE)) & CONTROL_CHARACTERS
    assert "evil" in without_controls(HOSTILE)


def test_the_detail_of_a_condition_is_bounded_and_has_no_control_characters() -> None:
    health = HealthBoard(FakeClock(), lambda: None)
    health.set("server-error", HOSTILE + "x" * 5000)
    (problem,) = health.problems()
    assert not set(problem.detail) & CONTROL_CHARACTERS
    assert len(problem.detail) == 1024


def test_service_manager_receives_one_printable_line(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(str(tmp_path / "notify"))
        reader.settimeout(5)
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}).status(HOSTILE)
        text = reader.recv(65536).decode()
    assert text.startswith("STATUS=")
    assert not set(text) & CONTROL_CHARACTERS


@pytest.mark.parametrize("error", [ServiceError(HOSTILE), ServiceUnavailable("proxy", HOSTILE)])
def test_an_error_on_the_terminal_has_no_control_characters(
    error: ServiceError, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    assert run_command(fail, debug=False) == 1
    assert not set(capsys.readouterr().err.replace("\n", "")) & CONTROL_CHARACTERS


def test_the_reason_of_a_rejected_entry_is_short() -> None:
    (reason,) = parse_frame(json.dumps({"version": 1, HOSTILE * 50: 1})).rejected
    assert len(reason) < 500


def test_texts_of_conditions_contain_no_control_characters() -> None:
    assert not set("".join(c.title + c.fix for c in CONDITIONS.values())) & CONTROL_CHARACTERS
