import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.dns import (
    NO_ERROR,
    NO_SUCH_NAME,
    TYPE_A,
    DnsReply,
    parse_reply,
    write_query,
    write_question,
)

NUMBER = 0x1234
QUESTION = write_question(["ops", "example", "com"], TYPE_A) or b""
RECORD = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4"
ALIAS = b"\xc0\x0c\0\5\0\1\0\0\0\x3c\0\6\3www\xc0\x10"


def reply(
    answers: bytes = b"",
    count: int = 0,
    *,
    flags: int = 0x8180,
    number: int = NUMBER,
    question: bytes = QUESTION,
) -> bytes:
    header = b"".join(each.to_bytes(2, "big") for each in (number, flags, 1, count, 0, 0))
    return header + question + answers


def test_a_query_has_one_question_and_requests_recursion() -> None:
    assert write_query(NUMBER, QUESTION) == bytes.fromhex(
        "12340100000100000000000003" + b"ops".hex() + "07" + b"example".hex() + "03" + b"com".hex()
    ) + bytes.fromhex("0000010001")


@pytest.mark.parametrize("labels", [(), ("",), ("x" * 64,), ("x" * 63,) * 5])
def test_an_impossible_name_is_refused(labels: tuple[str, ...]) -> None:
    assert write_question(labels, TYPE_A) is None


def test_addresses_behind_an_alias_are_read() -> None:
    data = reply(ALIAS + RECORD + bytes((192, 0, 2, 1)) + RECORD + bytes((192, 0, 2, 2)), 3)
    expected = DnsReply(NO_ERROR, ("192.0.2.1", "192.0.2.2"))
    assert parse_reply(data, NUMBER, QUESTION) == expected


def test_the_name_of_a_reply_can_have_another_case() -> None:
    data = reply(flags=0x8183, question=QUESTION.replace(b"ops", b"oPs"))
    assert parse_reply(data, NUMBER, QUESTION) == DnsReply(NO_SUCH_NAME, ())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        reply(number=NUMBER + 1),
        reply(flags=0x0100),
        reply(question=write_question(["ops", "example", "net"], TYPE_A) or b""),
        reply()[:-1],
        reply(bytes(5000)),
    ],
    ids=["empty", "other number", "a query", "other name", "cut off", "too long"],
)
def test_other_messages_are_no_reply(data: bytes) -> None:
    assert parse_reply(data, NUMBER, QUESTION) is None


@given(answers=st.binary(max_size=200), count=st.integers(0, 65535))
def test_any_answer_section_is_parsed_or_ignored(answers: bytes, count: int) -> None:
    parsed = parse_reply(reply(answers, count), NUMBER, QUESTION)
    assert parsed is not None
    assert len(parsed.addresses) <= len(answers) // 15
