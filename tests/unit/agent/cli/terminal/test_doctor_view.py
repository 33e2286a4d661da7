"""The results of doctor on a terminal."""

import io

from agent.cli.terminal.doctor_view import show
from agent.cli.terminal.screen import Screen
from agent.doctor.check import CheckResult, Status


def _result(name: str, status: Status, because: str | None = None) -> CheckResult:
    return CheckResult(name, "this machine", status, "detail", because=because)


def _text(*results: CheckResult) -> str:
    stream = io.StringIO()
    show(results, 0.0, Screen(stream, 100))
    return stream.getvalue()


def test_checks_that_depend_on_a_failed_check_share_one_row() -> None:
    text = _text(
        _result("state-directory", "fail"),
        _result("device-record", "skipped", because="state-directory"),
        _result("journal", "skipped", because="state-directory"),
    )
    assert "  skipped          device-record, journal: fix state-directory first\n" in text


def test_checks_that_depend_on_an_invisible_check_need_no_fix() -> None:
    text = _text(
        _result("state-directory", "unseen"),
        _result("device-record", "unseen", because="state-directory"),
        _result("journal", "unseen", because="state-directory"),
    )
    assert "device-record, journal: state-directory is not visible to you\n" in text
    assert "first" not in text
