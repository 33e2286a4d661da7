"""Tests direct queries: only answers with the id of the query are accepted, up to a limit."""

import socket
import threading
import time

import pytest

from collectors.network.mdns.announcers import LinkRecords
from collectors.network.mdns.direct import ANSWERS_MAX, query_directly
from collectors.network.mdns.records import Quota
from collectors.network.mdns.services import select_services
from collectors.network.mdns.wire import parse_response
from collectors.network.observations import MdnsService
from tests.unit.collectors.network.mdns.mdns_answers import (
    response,
    service,
    service_records,
    srv_question,
)
from tests.unit.collectors.network.mdns.test_browse import FakeRun

HOST = "127.0.0.9"
KITCHEN = service_records("Kitchen", "_ipp._tcp", 631, "brn1", HOST)


class Host:
    """A host that answers at 127.0.0.9, with the query's id, or with ``fixed_id`` if it is set.

    It does not answer the first ``ignored`` questions.
    """

    def __init__(self, *answers: bytes, fixed_id: bytes | None = None, ignored: int = 0) -> None:
        self.questions: list[bytes] = []
        self._answers = answers
        self._fixed_id = fixed_id
        self._ignored = ignored
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Host":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stopper:
            stopper.sendto(b"", (HOST, self.port))
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            question, source = self._socket.recvfrom(9000)
            if not question:
                return
            self.questions.append(question)
            if len(self.questions) <= self._ignored:
                continue
            for answer in self._answers:
                self._socket.sendto((self._fixed_id or question[:2]) + answer[2:], source)


def query_hosts(
    host: Host, *addresses: str, run: FakeRun | None = None, records: LinkRecords | None = None
) -> tuple[int, list[MdnsService]]:
    """Return the number of hosts that answered, and the services that they announced."""
    records = records or LinkRecords("eth0", Quota(1000))
    answered = query_directly(
        records,
        addresses or (HOST,),
        ("_ipp._tcp", "_http._tcp"),
        deadline_s=time.monotonic() + 60,
        run=run or FakeRun(),
        port=host.port,
    )
    return answered, select_services([records], records.quota)[0]


@pytest.mark.medium
def test_the_answer_to_a_direct_query_belongs_to_the_queried_host() -> None:
    with Host(response(*KITCHEN)) as host:
        answered, (result,) = query_hosts(host, "127.0.0.8", HOST)
    assert answered == 1
    assert (result.instance, result.addresses, result.announcer) == ("Kitchen", (HOST,), HOST)
    assert len({question[:2] for question in host.questions}) == len(host.questions)


@pytest.mark.medium
def test_missing_records_are_queried_once_more() -> None:
    with Host(response(*KITCHEN[:1])) as host:
        query_hosts(host)
    assert len(host.questions) == 2
    assert srv_question("Kitchen") in host.questions[1]


@pytest.mark.medium
def test_an_answer_with_a_different_id_is_ignored() -> None:
    with Host(response(*KITCHEN), fixed_id=b"\0\0") as host:
        # By chance, the query has the same id as this answer in one of 65,536 runs.
        answered, services = query_hosts(host)
    assert (answered, services) == (0, [])


@pytest.mark.medium
@pytest.mark.parametrize("has_announced", [True, False])
def test_a_host_is_queried_a_third_time_only_if_it_has_announced_something(
    has_announced: bool,
) -> None:
    records = LinkRecords("eth0", Quota(1000))
    if has_announced:
        records.add(
            HOST, parse_response(response(*service_records("Bar", "_ipp._tcp", 1, "h", HOST)))
        )
    with Host(response(*KITCHEN), ignored=2) as host:
        answered, services = query_hosts(host, records=records)
    assert answered == has_announced
    assert [service.instance for service in services] == ["Kitchen"] * has_announced


@pytest.mark.medium
def test_accepted_answers_are_bounded() -> None:
    flood = [service(f"P{n}", "_ipp._tcp", 631, "h", HOST) for n in range(4 * ANSWERS_MAX)]
    with Host(*flood) as host:
        _, services = query_hosts(host)
    assert 0 < len(services) <= ANSWERS_MAX


def test_a_cancelled_run_queries_no_host() -> None:
    with Host(response(*KITCHEN)) as host:
        assert query_hosts(host, run=FakeRun(cancelled=True)) == (0, [])
    assert host.questions == []
