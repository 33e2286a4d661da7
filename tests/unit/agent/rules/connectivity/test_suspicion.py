"""Tests of how the cause of an interruption is concluded from failed calls."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.errors import CredentialRefused, ServiceUnavailable, UnavailableCause
from agent.rules.connectivity.cause import NameServer, NameServerAnswer, Sample, diagnose
from agent.rules.connectivity.suspicion import Suspicion

START = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "answer", "cause"),
    [
        ("timeout", "answer", "service-down"),
        ("timeout", "silent", "name-servers-silent"),
        ("name-resolution", "answer", "name-servers-silent"),
        ("name-resolution", "failure", "name-servers-silent"),
    ],
)
def test_calls_that_fail_although_a_connection_is_possible_have_a_cause(
    error: UnavailableCause, answer: NameServerAnswer, cause: str
) -> None:
    server = NameServer("192.168.1.1", answer, is_local=True)
    sample = Sample(name_servers=(server,), service="connected")
    suspicion = Suspicion()
    for after_s in (0, 10):
        at = START + timedelta(seconds=after_s)
        assert suspicion.note_failure("heartbeat", ServiceUnavailable(error, "failed"), at)
        diagnosis = diagnose(suspicion.add_refusal(sample, at + timedelta(seconds=1)))
    assert diagnosis is not None
    assert diagnosis.cause == cause


def test_an_outage_of_the_name_servers_ends_when_they_answer_a_probe() -> None:
    suspicion = Suspicion()
    error = ServiceUnavailable("name-resolution", "temporary failure")
    causes = []
    for number, answer in enumerate(("silent", "silent", "answer")):
        at = START + timedelta(seconds=10 * number)
        if answer == "silent":
            suspicion.note_failure("heartbeat", error, at)
        server = NameServer("192.168.1.1", answer, is_local=True)  # type: ignore[arg-type]
        sample = Sample(name_servers=(server,), service="connected")
        diagnosis = diagnose(suspicion.add_refusal(sample, at + timedelta(seconds=1)))
        causes.append(diagnosis and diagnosis.cause)
    assert causes == ["name-servers-silent", "name-servers-silent", None]


@pytest.mark.parametrize(
    ("operation", "cause"),
    [
        ("heartbeat", None),
        ("onCommands as a stream", None),
        ("acknowledge", None),
        # `current` does not end the refusal, because it also succeeds while heartbeats are refused.
        ("current", "service-refuses"),
    ],
)
def test_a_refusal_ends_with_the_next_accepted_call_that_needs_a_binding(
    operation: str, cause: str | None
) -> None:
    suspicion = Suspicion()
    suspicion.note_failure("heartbeat", CredentialRefused("unknown key"), START)
    suspicion.note_success(operation)
    diagnosis = diagnose(suspicion.add_refusal(Sample(service="reply"), START))
    assert (diagnosis and diagnosis.cause) == cause
