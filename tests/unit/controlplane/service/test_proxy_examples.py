"""Tests that clients and the example configurations of proxies fit the limits of the service."""

import re

from agent.adapters import http_client as agent_client
from agent.wire import routes
from controlplane.client import connection as python_client
from controlplane.server import IDLE_S
from controlplane.settings import Settings
from tests.paths import ROOT

NGINX = (ROOT / "packaging/proxy/nginx.conf").read_text()
CADDY = (ROOT / "packaging/proxy/Caddyfile").read_text()


def test_streams_are_not_buffered_and_have_long_timeouts() -> None:
    unbuffered = re.search(r"location ~ (\S+) \{[^}]*proxy_buffering off;", NGINX)
    assert unbuffered is not None
    for path in (routes.ON_COMMANDS, "/console/api/changes"):
        assert re.search(unbuffered[1], path), path
    assert not re.search(unbuffered[1], routes.HEARTBEAT)
    waits = [int(seconds) for seconds in re.findall(r"proxy_read_timeout (\d+)s", NGINX)]
    assert min(waits) > 2 * Settings().keep_alive_s
    assert "flush_interval -1" in CADDY


def test_proxies_accept_bodies_up_to_the_limit_of_the_service() -> None:
    limit = Settings().body_limit_bytes
    for result in (
        re.search(r"client_max_body_size +(\d+)m", NGINX),
        re.search(r"(\d+)MiB", CADDY),
    ):
        assert result is not None
        assert int(result[1]) * 1024 * 1024 > limit


def test_clients_and_proxies_close_idle_connections_before_the_service() -> None:
    assert max(agent_client.IDLE_MAX_S, python_client.IDLE_MAX_S) < IDLE_S
    pattern = r"keepalive_timeout (\d+)s;\n}"
    for match in (re.search(pattern, NGINX), re.search(r"keepalive (\d+)s", CADDY)):
        assert match is not None
        assert int(match[1]) < IDLE_S
