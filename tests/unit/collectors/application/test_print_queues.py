"""The facts about print queues, from replies that were captured from CUPS 2.4.2."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.readers import print_queues
from collectors.application.readers.print_queues import Queue
from collectors.application.source import Unreadable
from collectors.shared.cups import NotRunning
from collectors.shared.ipp import CUPS_GET_PRINTERS, GET_JOBS, Response, decode_response
from collectors.shared.print_jobs import Job, parse_jobs
from tests.unit.collectors.application.fixtures import fixture, values

DEADLINE = Deadline.after(3600)
JOBS_CREATED_AT = 1795217553
PRINTERS = fixture("linux/cups-get-printers.ipp")
JOBS = fixture("linux/cups-get-jobs.ipp")


def cups(request: bytes, _: float) -> Response:
    operation = struct.unpack(">H", request[2:4])[0]
    return decode_response({CUPS_GET_PRINTERS: PRINTERS, GET_JOBS: JOBS}[operation])


def test_facts_about_queues_and_jobs_are_read() -> None:
    facts = values(print_queues.read_print_queues(DEADLINE, cups).fields)
    assert facts["printqueue.queues"] == ("bar", "kitchen")
    assert facts["printqueue.waitingJobs"] == 2
    assert facts["printqueue.stuckJobs"] == 2
    assert facts["printqueue.kitchen.state"] == "stopped"
    assert facts["printqueue.kitchen.reasons"] == ("paused",)
    assert facts["printqueue.bar.waitingJobs"] == 0


def test_job_names_and_owners_are_not_requested() -> None:
    requests = []

    def query(request: bytes, deadline_s: float) -> Response:
        requests.append(request)
        return cups(request, deadline_s)

    print_queues.read_print_queues(DEADLINE, query)
    assert len(requests) == 2
    for request in requests:
        for word in (b"job-name", b"user-name", b"all", b"info", b"location"):
            assert word not in request


def test_a_job_is_stuck_after_ten_minutes_or_in_a_stopped_queue() -> None:
    assert not Job("q", is_held=False, is_stopped=False, age_s=599).is_stuck()
    assert Job("q", is_held=False, is_stopped=False, age_s=601).is_stuck()
    assert Job("q", is_held=False, is_stopped=True, age_s=None).is_stuck()
    assert Job("q", is_held=False, is_stopped=False, age_s=1).is_stuck({"q"})
    assert not Job("q", is_held=True, is_stopped=False, age_s=9999).is_stuck({"q"})


def test_the_age_of_a_job_is_calculated_from_the_response() -> None:
    jobs = parse_jobs(decode_response(JOBS), JOBS_CREATED_AT + 30.5)
    assert [job.age_s for job in jobs] == [30, 30]


def test_print_queues_beyond_the_limit_are_counted() -> None:
    queues = [Queue(f"q{n}", "idle", None, ()) for n in range(40)]
    reading = print_queues.queue_reading(queues, [])
    assert reading.truncated
    assert reading.limitations == ("print queues beyond the limit of 32, not listed: 8",)


@given(st.binary())
def test_any_bytes_are_read_as_ipp_or_refused(data: bytes) -> None:
    try:
        response = decode_response(data)
    except ValueError:
        return
    print_queues.parse_queues(response)
    parse_jobs(response, 0.0)


@given(st.sampled_from([PRINTERS, JOBS]), st.data())
def test_damaged_ipp_is_read_or_refused(reply: bytes, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(reply) - 1))
    damaged = reply[:position] + data.draw(st.binary(max_size=3)) + reply[position + 1 :]
    try:
        response = decode_response(damaged)
    except ValueError:
        return
    print_queues.parse_queues(response)
    parse_jobs(response, 0.0)


@pytest.mark.parametrize("is_socket_there", [False, True])
def test_print_queue_facts_without_a_spooler_are_not_applicable(*, is_socket_there: bool) -> None:
    def query(_request: bytes, _deadline_s: float) -> Response:
        raise NotRunning(is_socket_there=is_socket_there)

    with pytest.raises(Unreadable, match="no print spooler") as refused:
        print_queues.read_print_queues(DEADLINE, query)
    assert refused.value.status == "not-applicable"
