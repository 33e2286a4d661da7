"""Tests that commands are parsed from every plausible form of an `onCommands` body, and that an
invalid body never raises an exception.
"""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.rules.command_frames import COMMANDS_MAX, FRAME_MAX_BYTES, Frame, parse_frame
from tests.time_limit import generous_time_limit

BINDING = "8f14e45f-ceea-467f-a0e6-5a1b2c3d4e5f"


def command(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "requestId": f"00000000-0000-4000-8000-{number:012x}",
        "bindingId": BINDING,
        "kind": "network",
        "expiresAt": "2026-11-20T19:14:12Z",
        "status": "queued",
        **changes,
    }


def numbers_of(frame: Frame) -> list[int]:
    """Return for each command the number from which `command` made its request id."""
    return [c.request_id.int & 0xFFFFFFFFFFFF for c in frame.commands]


COMMAND_1, COMMAND_2 = command(1), command(2)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (COMMAND_1, [1]),
        ([COMMAND_1, COMMAND_2], [1, 2]),
        ([], []),
        (None, []),
        ({}, []),
        ({"commands": [COMMAND_1, COMMAND_2]}, [1, 2]),
        ({"requests": [COMMAND_1]}, [1]),
        ({"items": [COMMAND_1], "next": None}, [1]),
        ({"commands": COMMAND_1}, [1]),
        ({"commands": None}, []),
        ({"commands": []}, []),
        ({**COMMAND_1, "items": [], "requests": None}, [1]),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_commands_are_parsed_from_each_form_of_document(document: Any, expected: list[int]) -> None:
    text = json.dumps(document)

    for data in (text, text.encode(), f"  {text}\r\n", json.dumps(document, indent=1).encode()):
        frame = parse_frame(data)
        assert numbers_of(frame) == expected
        assert frame.rejected == ()


@pytest.mark.parametrize("data", [b"", "", b" \r\n\t", "\n\n"])
def test_empty_input_is_an_empty_frame(data: str | bytes) -> None:
    assert parse_frame(data) == Frame()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_each_line_can_contain_one_document(end: str) -> None:
    text = end.join([json.dumps(COMMAND_1), "null", "[]", json.dumps([COMMAND_2, command(3)]), ""])

    assert numbers_of(parse_frame(text)) == [1, 2, 3]
    assert numbers_of(parse_frame(text.encode())) == [1, 2, 3]


@pytest.mark.parametrize("status", ["received", "running", "expired", "failed"])
def test_a_command_delivered_again_may_have_any_status(status: str) -> None:
    assert numbers_of(parse_frame(json.dumps(command(1, status=status)))) == [1]


BROKEN: list[Any] = [
    {key: value for key, value in COMMAND_1.items() if key != "kind"},
    command(9, kind="camera"),
    command(9, version=2),
    command(9, version="1"),
    command(9, requestId="9"),
    command(9, requestId=None),
    command(9, expiresAt="soon"),
    command(9, status="lost"),
    {"unknown": True},
    [COMMAND_1],
    "text",
    7,
    True,
    None,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda value: json.dumps(value)[:60])
def test_valid_entries_beside_an_invalid_entry_are_kept(broken: Any) -> None:
    frame = parse_frame(json.dumps([COMMAND_1, broken, COMMAND_2]))

    assert numbers_of(frame) == [1, 2]
    assert len(frame.rejected) == 1


def test_valid_lines_beside_invalid_lines_are_kept() -> None:
    frame = parse_frame(
        f"{json.dumps(COMMAND_1)}\n{{half\n{json.dumps(COMMAND_2)}\n\xff\n".encode("latin-1")
    )

    assert numbers_of(frame) == [1, 2]
    assert len(frame.rejected) == 2
    assert all(reason.startswith("not JSON") for reason in frame.rejected)


def test_the_reason_of_a_rejected_entry_names_its_field() -> None:
    assert parse_frame(json.dumps(command(kind="camera"))).rejected[0].startswith("kind: ")
    assert parse_frame('"text"').rejected[0].startswith("entry: ")


def test_the_last_of_two_equal_keys_is_used() -> None:
    text = json.dumps(COMMAND_1)[:-1] + ', "kind": "application"}'

    assert parse_frame(text).commands[0].kind == "application"


def test_keys_of_a_newer_service_are_ignored() -> None:
    assert numbers_of(parse_frame(json.dumps(command(1, priority=3, by={"name": "Sam"})))) == [1]


@pytest.mark.parametrize("separator", [",", "\n"])
def test_entries_beyond_the_bound_are_cut_and_reported(separator: str) -> None:
    entries = separator.join(json.dumps(command(n)) for n in range(1, COMMANDS_MAX + 50))

    frame = parse_frame(f"[{entries}]" if separator == "," else entries)

    # With one entry a line, the bound is checked after each line, so one more command is accepted.
    assert COMMANDS_MAX <= len(frame.commands) <= COMMANDS_MAX + 1
    assert frame.rejected == (f"more than {COMMANDS_MAX} entries in one frame",)


def test_oversized_frame_is_not_parsed() -> None:
    frame = parse_frame(b"[" + b" " * FRAME_MAX_BYTES + b"]")

    assert frame.commands == ()
    assert "too long" in frame.rejected[0]


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"commands":' * 50_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"9" * 1_000_000,
        b'"' + b"\\ud800" * 1000 + b'"',
        b"\xef\xbb\xbf[]",
        b"\x00" * 1000,
    ],
    ids=["open", "objects", "nested", "values", "digits", "surrogates", "bom", "zeros"],
)
def test_invalid_documents_are_rejected(data: bytes) -> None:
    frame = parse_frame(data)

    assert frame.commands == ()
    assert frame.rejected


@pytest.mark.parametrize("line", [b"[]", b"null", b"{}", b"1", b"x"])
def test_a_frame_of_many_lines_is_parsed_in_linear_time(line: bytes) -> None:
    data = (line + b"\n") * (FRAME_MAX_BYTES // (len(line) + 1) - 1)

    with generous_time_limit():
        frame = parse_frame(data)

    assert frame.rejected[-1] == f"more than {COMMANDS_MAX} entries in one frame"


@pytest.mark.parametrize("expires_at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_expiry_in_the_first_or_last_year_is_accepted(expires_at: str) -> None:
    assert numbers_of(parse_frame(json.dumps(command(1, expiresAt=expires_at)))) == [1]


@given(st.binary(max_size=300))
@example(b"\xff\xfe\n[]")
def test_any_bytes_are_parsed_as_a_frame(data: bytes) -> None:
    frame = parse_frame(data)

    assert isinstance(frame, Frame)


@given(st.text(st.characters(), max_size=100))
def test_random_text_contains_no_commands(text: str) -> None:
    assert parse_frame(text).commands == ()


json_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(("commands", "requests", "items", *COMMAND_1)) | st.text(max_size=4),
            inner,
        )
    ),
    max_leaves=12,
)


@given(json_documents)
def test_any_document_is_parsed_without_an_error(document: Any) -> None:
    parse_frame(json.dumps(document))


@given(
    st.lists(st.just(None) | st.integers(1, 2**40), max_size=30),
    st.sampled_from(["array", "commands", "requests", "items", "lines"]),
)
def test_valid_entries_are_kept_among_invalid_ones(numbers: list[int | None], form: str) -> None:
    entries = [json.dumps("no command" if n is None else command(n)) for n in numbers]
    array = f"[{','.join(entries)}]"
    text = {"array": array, "lines": "\n".join(entries)}.get(form, f'{{"{form}":{array}}}')

    frame = parse_frame(text)

    assert numbers_of(frame) == [n for n in numbers if n is not None]
    assert len(frame.rejected) == numbers.count(None)
