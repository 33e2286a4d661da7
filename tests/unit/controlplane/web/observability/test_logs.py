"""Tests of log records of calls: their content, their format, and data that is never logged."""

import json
import logging
from collections.abc import Iterator

import pytest

from agent.wire import routes
from controlplane.web.observability.logs import LIBRARY_LOGGERS, set_up_logging
from tests.unit.controlplane.running_service import RunningService


@pytest.fixture(autouse=True)
def _restore_log_levels() -> Iterator[None]:
    levels = {name: logging.getLogger(name).level for name in LIBRARY_LOGGERS}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


Capture = pytest.CaptureFixture[str]


def records_of_service(captured: Capture) -> list[dict[str, object]]:
    records = [json.loads(line) for line in captured.readouterr().err.splitlines()]
    return [line for line in records if line["logger"].startswith("controlplane")]


async def test_refusals_are_logged_and_successes_are_not(
    service: RunningService, capsys: Capture
) -> None:
    set_up_logging("info", "json")
    assert (await service.post(routes.CURRENT)).status_code == 200
    refused = await service.post(routes.REPORT_DETAIL, b'{"reportId": "secret-body"}')
    assert refused.status_code == 400
    (line,) = records_of_service(capsys)
    caller = service.caller(service.write_key)
    assert line.pop("time")
    assert float(str(line.pop("duration_ms"))) > 0
    assert str(line.pop("message")).startswith(f"POST {routes.REPORT_DETAIL} 400 ")
    assert line == {
        "level": "info",
        "logger": "controlplane.access",
        "trace_id": refused.headers["trace-id"],
        "operation": "remoteControl.reportDetail",
        "method": "POST",
        "path": routes.REPORT_DETAIL,
        "status": 400,
        "code": "validation_error",
        "key_id": str(caller.key_id),
        "organization_id": caller.organization_id,
    }


async def test_a_successful_call_is_logged_at_level_debug(
    service: RunningService, capsys: Capture
) -> None:
    set_up_logging("debug", "json")
    await service.post(routes.CURRENT)
    (line,) = [
        line for line in records_of_service(capsys) if line["logger"] == "controlplane.access"
    ]
    assert (line["level"], line["status"]) == ("debug", 200)
    assert "code" not in line


async def test_an_unexpected_error_is_logged_with_trace_id_and_traceback(
    service: RunningService, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up_logging("error", "json")

    def fail(*_: object) -> None:
        raise RuntimeError(f"look: {service.write_key}")

    monkeypatch.setattr(service.core.fairness, "admit", fail)
    response = await service.post(routes.CURRENT)
    assert response.status_code == 500
    fault, access = records_of_service(capsys)
    assert fault["trace_id"] == access["trace_id"] == response.headers["trace-id"]
    assert fault["level"] == access["level"] == "error"
    assert "RuntimeError: look: vck_…" in str(fault["exception"])


@pytest.mark.parametrize("form", ["json", "text"])
async def test_no_log_line_contains_a_key_a_header_or_a_body(
    service: RunningService, capsys: Capture, form: str
) -> None:
    set_up_logging("debug", form)  # type: ignore[arg-type]
    device = await service.device().enrolled()
    key = service.write_key
    await service.post(routes.CURRENT, b'{"unknown": "secret-body"}', x_other="secret-header")
    await service.post("/" + key, b"{}")
    retail_key = "venue_live_" + "a" * 64
    logging.getLogger("controlplane.test").error("wrote %s %s", key, retail_key)
    text = capsys.readouterr().err
    assert "wrote vck_… venue_live_…" in text
    for secret in (key, retail_key, "secret-body", "secret-header", device.public_key):
        assert secret not in text


@pytest.mark.parametrize("form", ["json", "text"])
async def test_untrusted_text_adds_no_control_characters_and_no_log_lines(
    service: RunningService, capsys: Capture, form: str
) -> None:
    set_up_logging("info", form)  # type: ignore[arg-type]
    await service.http.post("/a%0Ab%1B%5B2J%E2%80%AE")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert "/a?b?[2J?" in line


def test_the_text_format_writes_plain_log_lines(capsys: Capture) -> None:
    set_up_logging("info", "text")
    logging.getLogger("controlplane.test").info("hello")
    assert capsys.readouterr().err.endswith(" INFO controlplane.test hello\n")
