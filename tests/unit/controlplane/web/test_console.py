"""Tests of the web console: its files, its security policy, and the sign-in with a link."""

import json
import re

import pytest

from agent.presentation.machine_name import machine_name
from agent.wire.codec import encode
from controlplane.web.console import PAGES, SIGN_IN_MAX_BYTES
from tests.fixtures.payloads import hostile_network, small_venue
from tests.unit.controlplane.running_service import RunningService

REPORT = json.loads(encode(small_venue()))
HOSTILE = json.loads(encode(hostile_network()))


def directives(policy: str) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in policy.split(";"))
    return {name: sources for name, _, sources in parts}


@pytest.mark.parametrize("path", PAGES)
async def test_files_are_served_with_a_strict_policy(service: RunningService, path: str) -> None:
    response = await service.http.get(path)
    assert response.status_code == 200
    policy = directives(response.headers["content-security-policy"])
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in response.headers["content-security-policy"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", PAGES)
async def test_the_console_loads_nothing_from_other_servers(
    service: RunningService, path: str
) -> None:
    text = (await service.http.get(path)).text
    addresses = set(re.findall(r"(?:https?:)?//[a-z][^\s\"')]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("path", [path for path in PAGES if path.endswith((".js", "/"))])
async def test_scripts_never_insert_text_as_markup(service: RunningService, path: str) -> None:
    text = (await service.http.get(path)).text
    assert not re.search(
        r"\.(inner|outer)HTML\s*=[^=]|insertAdjacentHTML|document\.write|eval\(", text
    )
    assert not re.search(r"<script(?! type=\"module\" src=\"/console/main.js\")|\son\w+=", text)


async def test_every_module_that_is_imported_is_served(service: RunningService) -> None:
    imported: set[str] = set()
    for path in PAGES:
        text = (await service.http.get(path)).text
        imported.update(re.findall(r'from "\./(\w+\.js)"', text))
    assert len(imported) > 20
    assert {f"/console/{name}" for name in imported} <= set(PAGES)


async def test_the_console_page_accepts_only_get_and_head(service: RunningService) -> None:
    assert (await service.http.head("/")).status_code == 200
    assert (await service.http.post("/")).status_code == 405


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(REPORT, id="plain"),
        pytest.param(HOSTILE, id="hostile", marks=pytest.mark.medium),
    ],
)
async def test_a_report_page_is_sandboxed_and_loads_nothing(
    service: RunningService, report: object
) -> None:
    device = await service.device().enrolled()
    report_id = (await device.submit(report)).json()["reportId"]
    response = await device.call("/console/report", reportId=report_id)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = directives(response.headers["content-security-policy"])
    assert policy["default-src"] == "'none'"
    assert "sandbox" in policy
    style = policy["style-src"]
    assert style in (await service.http.get("/")).headers["content-security-policy"]
    assert "<script" not in response.text.lower()


async def test_a_report_page_requires_a_key_with_access(service: RunningService) -> None:
    device = await service.device().enrolled()
    report_id = (await device.submit(REPORT)).json()["reportId"]
    body = json.dumps({"reportId": report_id})
    path = "/console/report"
    assert (await service.post(path, body, authorization="")).status_code == 401
    key_of_other_location = service.make_key(can_write=False, locations=["loc-0002"])
    assert (await service.post(path, body, api_key=key_of_other_location)).status_code == 403
    reader = service.make_key(can_write=False)
    assert (await service.post(path, body, api_key=reader)).status_code == 200


async def test_a_report_without_content_has_no_page(service: RunningService) -> None:
    device = await service.device().enrolled()
    report_id = (await device.submit()).json()["reportId"]
    response = await device.call("/console/report", reportId=report_id)
    assert (response.status_code, response.json()["code"]) == (404, "report_empty")


async def test_a_link_signs_in_once(service: RunningService) -> None:
    path = service.core.sign_in_links.offer(service.write_key)
    body = json.dumps({"code": path.removeprefix("/#/sign-in/")})
    reply = await service.post("/console/sign-in", body, authorization="")
    assert reply.json() == {"key": service.write_key}
    assert reply.headers["cache-control"] == "no-store"
    again = await service.post("/console/sign-in", body, authorization="")
    assert (again.status_code, again.json()["code"]) == (404, "link_not_found")


@pytest.mark.parametrize("body", ['{"code": "x"}', '{"code": ""}', '{"code": 1}', "{}", "[]"])
async def test_a_sign_in_with_an_invalid_code_is_refused(
    service: RunningService, body: str
) -> None:
    service.core.sign_in_links.offer(service.write_key)
    reply = await service.post("/console/sign-in", body, authorization="")
    assert reply.status_code in {400, 404}
    assert "key" not in reply.json()


async def test_the_console_and_the_reports_recognise_the_same_generated_install_ids(
    service: RunningService,
) -> None:
    script = (await service.http.get("/console/device_names.js")).text
    pattern = re.search(r"GENERATED = /(.*)/i;", script)
    assert pattern is not None
    generated_id = "6f9a2a34-6a2a-4a39-b9b0-1a0c4b6f2f77"
    install_ids = (f"install-{generated_id}", f"Install-{generated_id.upper()}")
    for name in (generated_id, *install_ids, "till-3", "install-3"):
        is_generated = re.search(pattern[1], name, re.IGNORECASE) is not None
        assert is_generated is (machine_name(name) is None)


async def test_the_body_of_the_console_sign_in_is_limited(service: RunningService) -> None:
    body = json.dumps({"code": "x" * SIGN_IN_MAX_BYTES})
    reply = await service.post("/console/sign-in", body, authorization="")
    assert (reply.status_code, reply.json()["code"]) == (413, "body_too_large")
