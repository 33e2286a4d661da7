"""Tests of the proxy that doctor reports for calls to the service, and of the reported reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters import service_route
from agent.doctor.check import Outcome
from agent.doctor.checks import connection
from agent.doctor.context import Context
from agent.rules.route import route_of
from tests.unit.agent.samples import config

URL = "https://ops.example.com/base"


@pytest.mark.parametrize(
    ("configured", "environment", "system", "proxy", "why"),
    [
        ("", {}, {}, None, "no proxy is configured"),
        ("http://p:3128", {"HTTPS_PROXY": "http://q:1"}, {}, "http://p:3128", "service.proxy"),
        ("", {"HTTPS_PROXY": "http://q:1"}, {}, "http://q:1", "HTTPS_PROXY"),
        ("", {"HTTPS_PROXY": "q:1", "https_proxy": "r:2"}, {}, "http://r:2", "https_proxy"),
        ("", {"ALL_PROXY": "http://a"}, {}, "http://a:80", "ALL_PROXY"),
        ("", {"HTTP_PROXY": "http://q:1"}, {}, None, "no proxy is configured"),
        ("", {"HTTPS_PROXY": "q:1", "NO_PROXY": "x, .example.com"}, {}, None, "NO_PROXY names"),
        ("", {"HTTPS_PROXY": "q:1", "NO_PROXY": "*"}, {}, None, "NO_PROXY names *"),
        ("", {"HTTPS_PROXY": "q:1", "NO_PROXY": "ample.com"}, {}, "http://q:1", "HTTPS_PROXY"),
        ("", {}, {"https": "http://s:8"}, "http://s:8", "the operating system's settings"),
    ],
)
def test_configuration_environment_and_system_settings_determine_the_proxy_and_the_reason(
    configured: str,
    environment: dict[str, str],
    system: dict[str, str],
    proxy: str | None,
    why: str,
) -> None:
    route = route_of(URL, configured, environment, system)
    assert (str(route.proxy) if route.proxy else None) == proxy
    assert route.why.startswith(why)
    assert (route.host, route.port, route.path) == ("ops.example.com", 443, "/base")


def test_an_address_in_an_exempt_subnet_uses_no_proxy() -> None:
    environment = {"HTTP_PROXY": "q:1", "NO_PROXY": "10.0.0.0/8"}
    assert route_of("http://10.1.2.3:8080", "", environment, {}).proxy is None
    assert route_of("http://11.1.2.3:8080", "", environment, {}).proxy is not None


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.9.10"])
def test_no_proxy_is_used_for_this_machine(scheme: str, host: str) -> None:
    environment = {"HTTP_PROXY": "http://q:1", "HTTPS_PROXY": "http://q:1", "ALL_PROXY": "q:1"}
    route = route_of(f"{scheme}://{host}:8470", "http://p:3128", environment, {scheme: "r:1"})
    assert route.proxy is None
    assert route.why == "no proxy is used for a service on this machine"


def test_a_route_is_displayed_without_the_proxy_password() -> None:
    route = route_of(URL, "http://user:p%40ss@p:3128", {}, {})
    assert "p@ss" not in f"{route} {route!r} {route.proxy}"
    assert route.proxy is not None
    assert route.proxy.authorization == "Basic dXNlcjpwQHNz"


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_proxy_setting_is_parsed_or_raises_value_error(proxy: str, exempt: str) -> None:
    try:
        route = route_of(URL, "", {"HTTPS_PROXY": proxy, "NO_PROXY": exempt}, {})
    except ValueError:
        return
    assert route.host == "ops.example.com"


def test_an_ipv6_address_stands_in_brackets_before_its_port() -> None:
    route = route_of("https://[fd00::1]/base", "http://[fd00::2]:3128", {}, {})
    assert route.authority == "[fd00::1]:443"
    assert str(route.proxy) == "http://[fd00::2]:3128"


def outcome_with_system_proxies(
    monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str], script: str | None = None
) -> Outcome:
    """Return the outcome of the check for `service.proxy = "system"`.

    ``proxies`` and ``script`` are the proxies and the proxy script in the system's settings.
    """
    monkeypatch.setattr(service_route, "HAS_SETTINGS", True)
    monkeypatch.setattr(service_route, "system_proxies", lambda _: proxies)
    monkeypatch.setattr(connection, "script_address", lambda: script)
    settings = config("https://ops.example.com")
    service = settings.service.model_copy(update={"proxy": "system"})
    context = Context(environment={"HTTPS_PROXY": "http://other:1"})
    context.config = settings.model_copy(update={"service": service})
    return connection.route(context)


def test_the_proxy_of_the_system_is_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = outcome_with_system_proxies(monkeypatch, {"https": "http://p:3128"}, "http://pac/x")
    assert outcome.status == "ok"
    assert outcome.detail == (
        "to ops.example.com:443 through the proxy http://p:3128 (the operating system's settings)"
    )


def test_the_check_warns_of_a_proxy_script_that_the_agent_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = outcome_with_system_proxies(monkeypatch, {}, "http://pac.example/proxy.pac")
    assert outcome.status == "warn"
    assert outcome.detail == (
        "directly to ops.example.com:443: no proxy is configured; the system's settings name the"
        " script http://pac.example/proxy.pac, which the agent does not run"
    )
