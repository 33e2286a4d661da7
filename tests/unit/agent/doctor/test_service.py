"""Tests of the checks of the service's replies."""

import pytest

from agent.doctor.checks import service
from agent.doctor.context import CallResult, Context
from agent.errors import CredentialRefused, Refused, ServiceError, ServiceUnavailable
from tests.unit.agent.samples import config


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "ok"),
        (CredentialRefused("401"), "ok"),
        (ServiceUnavailable("server-error", "status 500"), "ok"),
        (ServiceUnavailable("captive-portal", "a web page"), "fail"),
        (ServiceUnavailable("redirect", "redirected"), "fail"),
        (ServiceUnavailable("timeout", "no reply in time"), "skipped"),
        (ServiceUnavailable("connection-lost", "reset"), "skipped"),
    ],
)
def test_only_a_reply_shows_whether_a_web_page_intercepts_calls(
    monkeypatch: pytest.MonkeyPatch, error: ServiceError | None, status: str
) -> None:
    monkeypatch.setattr(service, "_call_service", lambda *_: CallResult(error=error))
    outcome = service.captive_portal(Context())
    assert outcome.status == status
    assert status == "ok" or str(error) in outcome.detail
    assert outcome.facts["current_result"].error is error


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (Refused(403, "foreign_location", "no access"), "the service refuses the location"),
        (Refused(409, "location_closed", "closed"), "the service refuses the location"),
        (Refused(404, None, "not found"), "the service refuses the location"),
        (Refused(409, "too_many_devices", "limit"), "the service refuses to enroll this device"),
        (Refused(410, None, "gone"), "the service refuses to enroll this device"),
    ],
)
def test_a_refusal_names_the_location_only_if_the_reply_is_about_it(
    error: Refused, detail: str
) -> None:
    context = Context(config=config(), challenge_result=CallResult(error=error))
    outcome = service.location(context)
    assert outcome.status == "fail"
    assert outcome.detail.startswith(detail)
    assert ("service.location_id" in outcome.fix) == (detail == "the service refuses the location")
