"""Tests of the fresh reports of a support bundle, and of the reasons why a report is left out."""

from pathlib import Path

import pytest

from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import StatusFile
from agent.cli.terminal import support_bundle
from agent.config.model import LocalConfig
from agent.doctor.context import Context
from agent.errors import CollectorError
from agent.wire.payloads.by_kind import ReportPayload
from agent.wire.vocabulary import Kind
from collectors.contract import Job
from tests.fixtures import payloads
from tests.unit.agent.cli.running_state import running_daemon, status_of


class Collector:
    """Replaces the collector. ``kinds`` records the kinds of the requested reports in order."""

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.fails = False

    async def collect(self, config: LocalConfig, state: StateDirectory, job: Job) -> ReportPayload:
        self.kinds.append(job.kind)
        if self.fails:
            raise CollectorError("the child died")
        return payloads.small_venue()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    collector = Collector()
    monkeypatch.setattr(support_bundle, "collect_report", collector.collect)
    return collector


def context(directory: Path, local: LocalConfig | None) -> Context:
    return Context(state=StateDirectory(directory / "state"), local=local)


def omission_reasons(context: Context) -> list[str]:
    """Collect fresh reports. Return why each one is left out, or "" if it was collected."""
    return [report.reason for report in support_bundle._fresh_reports(context)]


def test_each_kind_is_collected_once(tmp_path: Path, collector: Collector) -> None:
    assert omission_reasons(context(tmp_path, LocalConfig())) == ["", ""]
    assert collector.kinds == ["network", "application"]


def test_a_disabled_kind_is_left_out_of_fresh_reports(tmp_path: Path, collector: Collector) -> None:
    local = LocalConfig.model_validate({"network": {"enabled": False}})
    assert omission_reasons(context(tmp_path, local)) == [support_bundle.SWITCHED_OFF, ""]
    assert collector.kinds == ["application"]


def test_without_a_configuration_nothing_is_collected(tmp_path: Path, collector: Collector) -> None:
    network, application = omission_reasons(context(tmp_path, None))
    assert "no configuration" in network
    assert "no configuration" in application
    assert collector.kinds == []


def test_failed_collection_is_reported(tmp_path: Path, collector: Collector) -> None:
    collector.fails = True
    assert omission_reasons(context(tmp_path, LocalConfig())) == ["the child died"] * 2


def test_fresh_reports_are_collected_after_the_running_collection_of_the_agent(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_daemon(tmp_path, activity="collecting: scan 12 of 254") as state:
        pauses_s: list[float] = []

        def sleep(seconds: float) -> None:
            assert collector.kinds == []
            pauses_s.append(seconds)
            if len(pauses_s) == 3:
                StatusFile(state).write(status_of(tmp_path))

        monkeypatch.setattr(support_bundle.time, "sleep", sleep)
        assert omission_reasons(context(tmp_path, LocalConfig())) == ["", ""]
    assert len(pauses_s) == 3


def test_fresh_reports_are_left_out_if_the_agent_does_not_stop_collecting(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses_s: list[float] = []
    monkeypatch.setattr(support_bundle.time, "monotonic", lambda: sum(pauses_s))
    monkeypatch.setattr(support_bundle.time, "sleep", pauses_s.append)
    with running_daemon(tmp_path, activity="collecting network"):
        assert (
            omission_reasons(context(tmp_path, LocalConfig()))
            == ["the daemon was collecting a report at the same time"] * 2
        )
    assert collector.kinds == []


def test_case_ids_have_no_ambiguous_characters() -> None:
    cases = {support_bundle.new_case_id() for _ in range(200)}
    assert len(cases) == 200
    assert not set("".join(cases)) & set("01ILO")
