"""Tests that timestamps are parsed in the formats that libraries of common languages write."""

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.rules.command_frames import parse_frame
from agent.wire.timestamps import to_utc

TEN_O_CLOCK = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
HALF_SECOND = timedelta(seconds=0.5)


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("2026-11-21T10:00:00.000Z", TEN_O_CLOCK),  # JavaScript: toISOString
        ("2026-11-21T10:00:00Z", TEN_O_CLOCK),  # Go: RFC3339, Java: Instant
        ("2026-11-21T10:00:00.5Z", TEN_O_CLOCK + HALF_SECOND),  # Go: RFC3339Nano cuts zeros
        ("2026-11-21T11:00:00.500000001+01:00", TEN_O_CLOCK + HALF_SECOND),
        ("2026-11-21 11:00:00.5 +0100 CET", TEN_O_CLOCK + HALF_SECOND),  # Go: String
        ("2026-11-21 10:00:00 +0000 UTC", TEN_O_CLOCK),
        ("2026-11-21T10:00Z", TEN_O_CLOCK),  # Java: OffsetDateTime without seconds
        ("2026-11-21T11:00+01:00[Europe/Berlin]", TEN_O_CLOCK),  # Java: ZonedDateTime
        ("2026-11-21T10:00Z[UTC]", TEN_O_CLOCK),
        (
            "2026-11-21T10:00:30.123456789Z",
            TEN_O_CLOCK + timedelta(seconds=30, microseconds=123456),
        ),
        ("2026-11-21T11:00:00+0100", TEN_O_CLOCK),
        ("2026-11-21T11:00:00+01", TEN_O_CLOCK),
        ("2026-11-21T09:30:00-00:30", TEN_O_CLOCK),
        ("2026-11-21T10:00:00+00:00", TEN_O_CLOCK),  # Python: isoformat
        ("2026-11-21 10:00:00.500000+00:00", TEN_O_CLOCK + HALF_SECOND),  # Python: str
        ("2026-11-21T11:00:30+01:00:30", TEN_O_CLOCK),
        ("2026-11-21T10:00:00", TEN_O_CLOCK),  # no zone
        ("2026-11-21T10:00:00.5000000Z", TEN_O_CLOCK + HALF_SECOND),  # .NET
        ("2026-11-21T10:00:00,5Z", TEN_O_CLOCK + HALF_SECOND),
        ("2026-11-21t10:00:00z", TEN_O_CLOCK),
        ("20261121T100000Z", TEN_O_CLOCK),
        ("2026-11-20T24:00:00Z", TEN_O_CLOCK - timedelta(hours=10)),
        ("2026-11-21T09:59:60Z", TEN_O_CLOCK),
        ("9999-12-31T23:59:59-14:00", datetime.max.replace(tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_timestamps_are_parsed_as_utc(text: str, timestamp: datetime) -> None:
    assert to_utc(text) == timestamp


@pytest.mark.parametrize(
    "text",
    [
        "", "soon", "2026-11-21", "2026-13-01T00:00:00Z", "2026-11-21T25:00:00Z",
        "2026-11-21T10:61:00Z", "2026-11-21T24:00:01Z", "+010000-01-01T00:00:00.000Z",
        "0000-01-01T00:00:00Z", "9999-12-31T24:00:00Z", "2026-11-21T10:00:00+99:00",
        "2026-11-21T10:00:00Z[" + "x" * 200 + "]", "1795255200", "\u0662026-11-21T10:00:00Z",
    ],
)  # fmt: skip
def test_invalid_timestamp_raises_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        to_utc(text)


def test_an_invalid_timestamp_rejects_only_its_own_entry() -> None:
    def entry(number: int, expires: str) -> str:
        uuid = f"00000000-0000-4000-8000-{number:012}"
        return (
            f'{{"version": 1, "requestId": "{uuid}", "bindingId": "{uuid}", "kind": "network",'
            f' "expiresAt": "{expires}", "status": "queued"}}'
        )

    forms = ("2026-11-21T10:00Z", "+012026-11-21T10:00:00Z", "2026-11-21 10:00:00+00")
    frame = parse_frame(f"[{', '.join(entry(n, form) for n, form in enumerate(forms))}]")

    assert [command.expires_at for command in frame.commands] == [TEN_O_CLOCK, TEN_O_CLOCK]
    assert frame.rejected == ("expiresAt: is not an ISO 8601 date-time",)


@given(st.text(alphabet="0123456789-:+.,TZtz []/ab", max_size=60))
def test_any_text_is_parsed_as_utc_or_raises_an_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert to_utc(text).tzinfo is UTC


@given(
    st.datetimes(
        min_value=datetime(2, 1, 1),  # noqa: DTZ001 - Hypothesis needs bounds without a zone
        max_value=datetime(9998, 12, 31),  # noqa: DTZ001
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
    )
)
def test_timestamps_written_by_python_are_parsed(timestamp: datetime) -> None:
    assert to_utc(timestamp.isoformat()) == to_utc(str(timestamp)) == timestamp
