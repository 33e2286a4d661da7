"""Tests of log records: ids become fields, repeated messages are counted, and systemd's journal
receives its native format.
"""

import ast
import json
import logging
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.model import Logging
from agent.logs.filters import (
    ENTRIES_MAX,
    FIELDS,
    VARIANTS_MAX,
    RedactFilter,
    RepeatFilter,
)
from agent.logs.journald import JournalHandler, datagram, is_stderr_the_journal
from agent.logs.setup import (
    JsonFormatter,
    PlainFormatter,
    PriorityFormatter,
    set_up_logging,
)
from tests.paths import ROOT

ID_IN_MESSAGE = re.compile(r"\b(request|report|binding) %s")


def record(
    msg: str, *args: object, level: int = logging.ERROR, **extra: object
) -> logging.LogRecord:
    entry = logging.LogRecord("agent.tasks.x", level, __file__, 1, msg, args, None)
    entry.__dict__.update(extra)
    return entry


def calls_that_name_an_id() -> Iterator[tuple[str, int]]:
    """Yield the message of each log call of the agent that names an id, and the number of the
    call's arguments.
    """
    for path in sorted((ROOT / "agent").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("log."):
                message = str(getattr(call.args[0], "value", ""))
                if ID_IN_MESSAGE.search(message):
                    yield message, len(call.args) - 1


def test_ids_in_messages_become_fields() -> None:
    calls = list(calls_that_name_an_id())
    assert len(calls) > 15, "the search must find log calls"
    for message, count in calls:
        entry = record(message, *(f"argument-{number}" for number in range(count)))
        RedactFilter().filter(entry)
        ids = re.findall(r"\b(request|report|binding) (argument-\d)", entry.getMessage())
        fields = {f"{word}_id": value for word, value in ids}
        assert {name: getattr(entry, name, None) for name in fields} == fields, message


def test_json_lines_contain_the_ids() -> None:
    entry = record(
        "request %s: report %s is given up", "r-1", "p-1", request_id="r-1", report_id="p-1"
    )
    line = json.loads(JsonFormatter().format(entry))
    assert line["message"] == "request r-1: report p-1 is given up"
    assert (line["request_id"], line["report_id"]) == ("r-1", "p-1")
    assert (line["level"], line["logger"]) == ("error", "agent.tasks.x")


def test_json_lines_contain_ids_that_are_set_and_omit_ids_that_are_none() -> None:
    entry = record("request %s", "r-1", request_id="r-2", report_id=None)
    line = json.loads(JsonFormatter().format(entry))
    assert {name: line[name] for name in FIELDS if name in line} == {"request_id": "r-2"}


class Repeats:
    """The filter of repeated messages, with a fake clock. ``written`` contains the messages that
    pass the filter.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.written: list[str] = []
        self.filter = RepeatFilter(lambda r: self.written.append(r.getMessage()), lambda: self.now)

    def log(self, entry: logging.LogRecord) -> None:
        if self.filter.filter(entry):
            self.written.append(entry.getMessage())


def test_the_same_error_is_written_twice_a_minute_then_counted() -> None:
    repeats = Repeats()
    for second in range(50):
        repeats.now = float(second)
        repeats.log(record("try %d failed: %s", second, "no route"))
    assert repeats.written == ["try 0 failed: no route", "try 1 failed: no route"]
    repeats.now = 61.0
    repeats.log(record("something else", level=logging.INFO))
    assert repeats.written[2:] == [
        "try 49 failed: no route (and 48 more like it in 61 s)", "something else",
    ]  # fmt: skip
    repeats.log(record("try %d failed: %s", 99, "no route"))
    assert repeats.written[-1] == "try 99 failed: no route"


def test_different_errors_and_all_info_messages_are_written() -> None:
    repeats = Repeats()
    for name in "abcde":
        repeats.log(record("it is %s", name))
        for _ in range(3):
            repeats.log(record("all is well", level=logging.INFO))
    assert len(repeats.written) == 20


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING, logging.ERROR])
def test_messages_of_one_template_are_limited_per_minute(level: int) -> None:
    """Messages of one template count as alike, although untrusted text makes each one different."""
    repeats = Repeats()
    for number in range(5000):
        repeats.now = number / 1000
        repeats.log(record("ignored: %s", f"entry-{number}x", level=level))
    assert len(repeats.written) == VARIANTS_MAX
    repeats.now = 66.0
    repeats.log(record("something else", level=logging.INFO))
    assert repeats.written[VARIANTS_MAX].endswith(
        f"(and {5000 - VARIANTS_MAX} more like it in 66 s)"
    )


def test_redacted_messages_are_limited_by_their_template() -> None:
    repeats = Repeats()
    for number in range(VARIANTS_MAX * 2):
        entry = record("no way by %s", f"http://u{number}x:hunter2@proxy{number}x")
        assert RedactFilter().filter(entry)
        assert vars(entry)["template"] == "no way by %s"
        assert "hunter2" not in entry.getMessage()
        repeats.log(entry)
    assert len(repeats.written) == VARIANTS_MAX


def test_arguments_that_do_not_match_the_template_are_appended() -> None:
    entry = record("no way by %s to %s", "http://u:hunter2@proxy")
    assert RedactFilter().filter(entry)
    assert vars(entry)["template"] == "no way by %s to %s"
    assert entry.getMessage().startswith("no way by %s to %s (")
    assert "hunter2" not in entry.getMessage()


def test_debug_messages_are_never_suppressed() -> None:
    repeats = Repeats()
    for _ in range(100):
        repeats.log(record("frame", level=logging.DEBUG))
    assert len(repeats.written) == 100


def test_the_count_of_a_message_is_written_when_the_filter_is_full() -> None:
    repeats = Repeats()
    for number in range(ENTRIES_MAX * 2):
        for _ in range(3):
            repeats.log(record(f"it is n{number}x"))
    assert len([line for line in repeats.written if "1 more" in line]) >= ENTRIES_MAX - 2


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(str(tmp_path / "socket"))
        reader.settimeout(5)
        yield reader


def test_the_journal_gets_fields(journal: socket.socket, tmp_path: Path) -> None:
    handler = JournalHandler(tmp_path / "socket")
    handler.handle(record("request %s broke\nbadly", "r-1", request_id="r-1"))
    handler.close()
    assert parse(journal.recv(65536)) == {
        "MESSAGE": "request r-1 broke\nbadly",
        "PRIORITY": "3",
        "SYSLOG_IDENTIFIER": "venue-agent",
        "LOGGER": "agent.tasks.x",
        "VENUE_AGENT_REQUEST_ID": "r-1",
    }


def test_missing_journal_socket_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        JournalHandler(tmp_path / "none")


@given(st.dictionaries(st.sampled_from(["MESSAGE", "X"]), st.text(max_size=100), max_size=2))
def test_any_value_is_encoded_for_the_journal(fields: dict[str, str]) -> None:
    expected = {k: v.encode("utf-8", "backslashreplace").decode() for k, v in fields.items()}
    assert parse(datagram(fields)) == expected


def parse(data: bytes) -> dict[str, str]:
    """Parse a datagram as systemd's journald does."""
    fields = {}
    while data:
        head, _, data = data.partition(b"\n")
        key, equals, value = head.partition(b"=")
        if not equals:
            (length,) = struct.unpack_from("<Q", data)
            value, data = data[8 : 8 + length], data[8 + length + 1 :]
        fields[key.decode()] = value.decode()
    return fields


HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202eevil\u2066 \x00 \u2028 line\nforged"
CONTROL_CHARACTERS = "\x1b\x07\x9b\x00\u202e\u2066\u2028"


@pytest.mark.parametrize(
    "formatter",
    [JsonFormatter(), PriorityFormatter("%(message)s"), PlainFormatter("%(message)s")],
    ids=["json", "priority", "text"],
)
def test_log_lines_contain_no_control_characters(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        error = sys.exc_info()
    for entry in (record("the service says %s", HOSTILE), record(HOSTILE)):
        line = formatter.format(entry)
        line = json.loads(line)["message"] if isinstance(formatter, JsonFormatter) else line
        assert not set(line) & set(CONTROL_CHARACTERS)
        assert "evil" in line
        assert "\n" not in line
    entry = record("broke")
    entry.exc_info = error
    line = formatter.format(entry)
    assert "evil" in line, "the text of the error must be written"
    assert not set(line) & set(CONTROL_CHARACTERS)


def test_a_message_is_written_as_one_line_after_its_priority() -> None:
    assert PriorityFormatter().format(record("a\nb")) == "<3>a | b"


def test_stderr_is_the_journal_only_if_journal_stream_identifies_its_file() -> None:
    status = os.fstat(2)
    assert is_stderr_the_journal({"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
    assert not is_stderr_the_journal({"JOURNAL_STREAM": "1:2"})
    assert not is_stderr_the_journal({"JOURNAL_STREAM": "x"})
    assert not is_stderr_the_journal({})


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    yield
    root.handlers[:], root.level = handlers, level


@pytest.mark.usefixtures("restored_logging")
def test_the_daemon_logs_json_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(Logging())
    log = logging.getLogger("agent.test")
    for _ in range(5):
        log.error("report %s is given up", "p-1", extra={"report_id": "p-1"})
    log.debug("not wanted")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["report_id"] for line in lines] == ["p-1", "p-1"]
    set_up_logging(Logging(format="text"))
    log.error("plain")
    assert capsys.readouterr().err.endswith("ERROR   plain\n")
