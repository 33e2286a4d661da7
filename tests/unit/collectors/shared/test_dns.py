from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.dns import Reply, parse_reply, write_question

QUESTION = b"\x03ops\x07example\x00\x00\x01\x00\x01"


def test_a_question_is_encoded() -> None:
    assert write_question(("ops", "example"), "A") == QUESTION
    assert write_question(("a" * 64,), "A") is None
    assert write_question(("a", "", "b"), "A") is None


def test_a_refusal_without_the_question_is_a_reply() -> None:
    assert parse_reply(b"\x12\x34\x81\x85" + bytes(8), 0x1234, QUESTION) == Reply(5, 0)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_reply_or_ignored(data: bytes) -> None:
    reply = parse_reply(data, 0x1234, QUESTION)
    assert reply is None or data[:2] == b"\x12\x34"
