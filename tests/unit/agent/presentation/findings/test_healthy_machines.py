"""Tests that healthy reports have no findings: application reports of three machines, and a network
report.
"""

import pytest

from agent.presentation.findings.findings import findings_of
from agent.presentation.headline import headline_of
from agent.wire.payloads.network import MapHost, NetworkPayload
from agent.wire.vocabulary import BrowserFieldKey
from collectors.application.registry import sources_for
from collectors.contract import ApplicationJob
from tests.fixtures.healthy import HEALTHY, healthy
from tests.unit.agent.presentation.findings.networks import healthy_network

PLATFORMS = {"linux-till": "linux", "mac": "darwin", "windows-back-office": "win32"}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_has_no_findings(name: str) -> None:
    assert findings_of(healthy(name)) == ()
    headline = headline_of(healthy(name))
    assert (headline.verdict, headline.severity) == ("No problem was found.", "good")


@pytest.mark.parametrize("name", HEALTHY)
def test_snapshots_of_healthy_machines_have_every_key(name: str) -> None:
    payload = healthy(name)
    reported = {field.key for field in payload.snapshot.fields}
    sources = sources_for(PLATFORMS[name], ApplicationJob(5))
    assert {key for source in sources if not source.in_browser for key in source.keys} <= reported
    assert {field.key for field in payload.browser_fields} == set(BrowserFieldKey.__args__)
    assert sum(field.status == "available" for field in payload.snapshot.fields) > 90


@pytest.mark.parametrize("payload", [healthy_network(), healthy_network(printers=())])
def test_a_healthy_network_has_no_findings(payload: NetworkPayload) -> None:
    assert findings_of(payload) == ()


def test_an_unchecked_network_has_no_findings() -> None:
    """A report has no network findings if scanning is disabled or limited to this machine."""
    payload = healthy_network()
    lan_map = payload.network_map
    assert lan_map
    own_hosts: tuple[MapHost, ...] = tuple(h for h in lan_map.hosts if "local" in h.sources)
    own_map = lan_map.model_copy(update={"hosts": own_hosts})
    limited = {"scope": "device", "network_map": own_map, "endpoints": (), "printers": None}
    assert findings_of(payload.model_copy(update=limited)) == ()
    disabled = {**limited, "network_map": None}
    assert findings_of(payload.model_copy(update=disabled)) == ()
