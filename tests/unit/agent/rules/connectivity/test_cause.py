"""Tests that the cause of an interruption is the first failing part of the path to the service."""

from dataclasses import replace

import pytest

from agent.errors import CredentialRefused, Refused, ServiceUnavailable, Throttled
from agent.rules.connectivity.cause import (
    Diagnosis,
    LinkState,
    NameServer,
    NameServerAnswer,
    Sample,
    diagnose,
    diagnose_reply,
)

LINK = LinkState("eth0", True, ("192.168.1.20",), True, "192.168.1.1")
LOCAL_SERVER = NameServer("192.168.1.1", "answer", is_local=True)
REMOTE_SERVER = NameServer("9.9.9.9", "answer", is_local=False)
WORKING = Sample(LINK, gateway_answers=True, name_servers=(LOCAL_SERVER,), service="connected")
SERVICE_SILENT = replace(WORKING, service="silent")


def test_a_working_path_has_no_cause() -> None:
    assert diagnose(WORKING) is None
    assert diagnose(replace(WORKING, service="reply", gateway_answers=None)) is None


@pytest.mark.parametrize(
    ("sample", "cause"),
    [
        (replace(SERVICE_SILENT, link=replace(LINK, has_link=False, addresses=())), "link-down"),
        (replace(SERVICE_SILENT, link=replace(LINK, addresses=())), "no-address"),
        (replace(SERVICE_SILENT, conflicting_address="192.168.1.20"), "address-conflict"),
        (
            replace(SERVICE_SILENT, link=replace(LINK, has_route=False, gateway=None)),
            "gateway-silent",
        ),
        (replace(SERVICE_SILENT, gateway_answers=False), "gateway-silent"),
        (replace(SERVICE_SILENT, name_servers=(REMOTE_SERVER,)), "service-down"),
        (
            replace(SERVICE_SILENT, name_servers=(replace(LOCAL_SERVER, can_forward=True),)),
            "service-down",
        ),
        (
            replace(SERVICE_SILENT, name_servers=(replace(LOCAL_SERVER, can_forward=False),)),
            "provider-down",
        ),
        (
            replace(SERVICE_SILENT, name_servers=(replace(LOCAL_SERVER, answer="silent"),)),
            "provider-down",
        ),
        (
            replace(SERVICE_SILENT, name_servers=(replace(LOCAL_SERVER, answer="failure"),)),
            "provider-down",
        ),
        (replace(SERVICE_SILENT, name_servers=(), service="unreachable"), "provider-down"),
        (replace(SERVICE_SILENT, name_servers=()), "unreachable"),
        (SERVICE_SILENT, "unreachable"),
        (
            replace(SERVICE_SILENT, link=LinkState(), gateway_answers=None, name_servers=()),
            "unreachable",
        ),
        (replace(SERVICE_SILENT, is_service_local=True, gateway_answers=False), "service-down"),
        (replace(WORKING, service="refused"), "service-down"),
        (
            replace(WORKING, name_servers=(replace(LOCAL_SERVER, answer="silent"),)),
            "name-servers-silent",
        ),
        (
            replace(WORKING, refusal=Diagnosis("service-refuses", "the API key is unknown")),
            "service-refuses",
        ),
    ],
)
def test_the_nearest_failing_part_is_the_cause(sample: Sample, cause: str) -> None:
    diagnosis = diagnose(sample)
    assert diagnosis is not None
    assert diagnosis.cause == cause
    assert diagnosis.evidence
    assert not diagnosis.evidence.endswith(".")


def test_the_evidence_contains_a_name_server_that_fails_only_for_the_name_of_the_service() -> None:
    failing = replace(LOCAL_SERVER, answer="failure", can_forward=True)
    diagnosis = diagnose(replace(SERVICE_SILENT, name_servers=(failing,)))
    assert diagnosis is not None
    assert f"name server {LOCAL_SERVER.address} answers, the service does not" in diagnosis.evidence


@pytest.mark.parametrize(
    ("answers", "evidence"),
    [
        (("silent",), "no answer from name server 192.168.1.1"),
        (("failure",), "an error from name server 192.168.1.1"),
        (
            ("failure", "silent"),
            "an error from name server 192.168.1.1 and no answer from name server 192.168.1.1",
        ),
    ],
)
def test_a_name_server_that_answers_with_an_error_is_not_called_silent(
    answers: tuple[NameServerAnswer, ...], evidence: str
) -> None:
    servers = tuple(replace(LOCAL_SERVER, answer=answer) for answer in answers)
    diagnosis = diagnose(replace(WORKING, name_servers=servers))
    assert diagnosis is not None
    assert diagnosis.evidence == f"{evidence}, but the network works"
    without_service = diagnose(replace(SERVICE_SILENT, gateway_answers=None, name_servers=servers))
    assert without_service is not None
    last = " and the service" if answers[-1] == "silent" else " and no answer from the service"
    assert without_service.evidence == f"{evidence}{last}"


def test_one_silent_name_server_of_two_is_no_interruption() -> None:
    servers = (replace(LOCAL_SERVER, answer="silent"), REMOTE_SERVER)
    assert diagnose(replace(WORKING, name_servers=servers)) is None


def test_there_is_no_cause_before_the_service_was_tried() -> None:
    assert diagnose(Sample(LINK)) is None


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (CredentialRefused("the API key is unknown"), "service-refuses"),
        (Refused(403, None, "no write grant"), "service-refuses"),
        (ServiceUnavailable("server-error", "HTTP 502"), "service-down"),
        (ServiceUnavailable("captive-portal", "a web page answers"), "unreachable"),
        (Throttled("too many calls", 5.0), None),
        (ServiceUnavailable("timeout", "no reply"), None),
    ],
)
def test_a_refusal_or_wrong_reply_has_a_cause_but_throttling_and_a_timeout_have_none(
    error: ServiceUnavailable | CredentialRefused | Refused, cause: str | None
) -> None:
    diagnosis = diagnose_reply(error)
    assert (diagnosis.cause if diagnosis else None) == cause
