"""Reads the route of the agent's calls to the service from the configuration and the system."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from agent.config.model import SYSTEM_PROXY, Service
from agent.rules.route import Route, route_of
from collectors.shared.system_proxy import HAS_SETTINGS, system_proxies


def service_route(service: Service, environment: Mapping[str, str] = os.environ) -> Route:
    """Return the route that the daemon uses: direct, or through a proxy.

    The proxy settings of Windows and macOS contain a list of hosts that bypass the proxy.

    - With ``service.proxy = "system"``, the settings and this list are used, and environment
      variables are ignored. On systems without such settings, the variables are used.
    - By default, the variables are used. If none is set (HTTPS_PROXY, NO_PROXY and so on), the
      settings are used without the list, because the daemon's HTTP library ignores it.

    Raises ValueError if the URL of a proxy is invalid.
    """
    if service.proxy == SYSTEM_PROXY:
        system = system_proxies(urlsplit(service.base_url).hostname or "")
        return route_of(service.base_url, "", {} if HAS_SETTINGS else environment, system)
    has_variables = any(name.lower().endswith("_proxy") for name in environment)
    # Without a host, the list of hosts that bypass the proxy is not applied.
    system = {} if has_variables else system_proxies("")
    return route_of(service.base_url, service.proxy, environment, system)
