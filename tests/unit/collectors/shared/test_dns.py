from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.dns import Reply, parse_reply, read_addresses, write_question

QUESTION = b"\x03ops\x07example\x00\x00\x01\x00\x01"
"""A question for the IPv4 address of ops.example."""
RECORD = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4"
"""An A record of ops.example, without the address at its end."""
ALIAS = b"\xc0\x0c\0\5\0\1\0\0\0\x3c\0\6\3www\xc0\x10"
"""A CNAME record of ops.example with the target www.example."""


def reply(answers: bytes, count: int) -> bytes:
    """Return a reply to `QUESTION` with an answer section, and with the number of its records."""
    return b"\x12\x34\x81\x80\0\1" + count.to_bytes(2, "big") + bytes(4) + QUESTION + answers


def test_a_question_is_encoded() -> None:
    assert write_question(("ops", "example"), "A") == QUESTION
    assert write_question(("a" * 64,), "A") is None
    assert write_question(("a", "", "b"), "A") is None


def test_a_refusal_without_the_question_is_a_reply() -> None:
    assert parse_reply(b"\x12\x34\x81\x85" + bytes(8), 0x1234, QUESTION) == Reply(5, 0)


@given(
    st.sampled_from((b"", b"\x12\x34\x81\x85" + bytes(8), b"\x12\x35\x81\x85" + bytes(8))),
    st.binary(max_size=64),
)
def test_any_bytes_without_the_id_of_the_query_are_ignored(start: bytes, rest: bytes) -> None:
    data = start + rest
    parsed = parse_reply(data, 0x1234, QUESTION)
    assert parsed is None or data[:2] == b"\x12\x34"


def test_addresses_behind_an_alias_are_read() -> None:
    data = reply(ALIAS + RECORD + bytes((192, 0, 2, 1)) + RECORD + bytes((192, 0, 2, 2)), 3)
    assert parse_reply(data, 0x1234, QUESTION) == Reply(0, 3)
    assert read_addresses(data, QUESTION) == ("192.0.2.1", "192.0.2.2")


@given(answers=st.binary(max_size=200), count=st.integers(0, 65535))
def test_any_answer_section_gives_no_more_addresses_than_it_can_hold(
    answers: bytes, count: int
) -> None:
    addresses = read_addresses(reply(answers, count), QUESTION)
    assert len(addresses) <= len(answers) // 15  # the size of the shortest A record
