"""Situations with and without a real fault.

Each situation declares the only check for which doctor must report a problem, or None.
"""

import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from tests.fakes.http_server import HttpServer, Reply
from tests.scenario.agent_process import running_agent, write_config
from tests.scenario.doctor.breakage import (
    Outcomes,
    always,
    date_headers_shifted,
    doctor_of_a_real_agent,
    drop_packets,
    open_tunnel,
    over_tls,
    proxy,
    reference_service,
    use_name_server,
)
from tests.scenario.doctor.world import UNUSED_ADDRESS, World, run


@dataclass(frozen=True)
class Situation:
    """A situation and the expected result of doctor.

    Doctor must report a problem with ``status`` for the check ``cause``, and for no other check.
    The detail and the fix of the problem must contain the texts ``detail`` and ``fix``. If
    ``cause`` is None, doctor must report no problem.
    """

    play: Callable[[World], Awaitable[Outcomes]]
    cause: str | None
    status: str
    detail: str
    fix: str


SITUATIONS: dict[str, Situation] = {}


def situation(
    cause: str | None, status: str = "fail", *, detail: str = "", fix: str = ""
) -> Callable[[Callable[[World], Awaitable[Outcomes]]], Callable[[World], Awaitable[Outcomes]]]:
    """Return a decorator that adds a function to `SITUATIONS`, under the name of the function."""

    def declare(
        play: Callable[[World], Awaitable[Outcomes]],
    ) -> Callable[[World], Awaitable[Outcomes]]:
        SITUATIONS[play.__name__] = Situation(play, cause, status, detail, fix)
        return play

    return declare


def _problem(status: int, code: str) -> Callable[[], Reply]:
    body = json.dumps({"status": status, "code": code, "detail": code.replace("_", " ")}).encode()
    return lambda: Reply(status, body, "application/problem+json")


# ------------------------------------------------------------------------------ nothing is wrong


@situation(None)
async def healthy(world: World) -> Outcomes:
    return await world.doctor()


@situation(None)
async def a_real_agent_runs(world: World) -> Outcomes:
    return await doctor_of_a_real_agent(world)


@situation(None)
async def trusted_by_the_configured_authority(world: World) -> Outcomes:
    async with over_tls(world, is_trusted=True):
        return await world.doctor()


@situation(None)
async def through_a_proxy(world: World) -> Outcomes:
    # The service needs a name, because the agent calls addresses on loopback without the proxy.
    # No name server knows this name. The proxy connects to loopback, whatever the name is.
    tls = over_tls(world, is_trusted=True, url_host="ops.venue.test")
    async with tls, proxy(open_tunnel) as port:
        world.sections["service"] += f'\nproxy = "http://user:secret@127.0.0.1:{port}"'
        return await world.doctor()


@situation(None)
async def a_service_on_this_machine_and_dead_proxies(world: World) -> Outcomes:
    world.sections["service"] = 'proxy = "http://127.0.0.1:9"'
    world.environment["HTTP_PROXY"] = world.environment["http_proxy"] = "http://127.0.0.1:9"
    return await world.doctor()


# ------------------------------------------------------------------------------ the configuration


@situation("configuration", detail="did you mean 'interval_seconds'", fix="config check")
async def a_mistyped_key(world: World) -> Outcomes:
    world.sections["heartbeat"] = "intervall_seconds = 5"
    world.is_running = False
    return await world.doctor()


@situation("api-key", detail="No such file", fix="write grant")
async def no_key_file(world: World) -> Outcomes:
    write_config(world.home, world.base_url)
    missing_file = world.home / "elsewhere"
    world.environment["VENUE_AGENT_SERVICE__API_KEY_FILE"] = str(missing_file)
    return await world.doctor()


@situation("trust-anchors", detail="no PEM certificate", fix="service.ca_file")
async def a_broken_ca_file(world: World) -> Outcomes:
    ca_file = world.home / "ca.pem"
    ca_file.write_text("not a certificate")
    async with over_tls(world, is_trusted=False):
        world.sections["service"] = f'ca_file = "{ca_file}"'
        return await world.doctor()


# ------------------------------------------------------------------------------ this machine


@situation("state-directory", detail="Read-only file system", fix="repair")
async def a_read_only_state_directory(world: World) -> Outcomes:
    world.enroll()
    world.is_running = False
    path = str(world.state.path)
    run("mount", "--bind", path, path)
    run("mount", "-o", "remount,bind,ro", path)
    return await world.doctor()


@situation("state-directory", detail="not a directory", fix="device.state_dir")
async def a_file_in_place_of_the_state_directory(world: World) -> Outcomes:
    world.state.path.write_text("")
    world.is_running = False
    return await world.doctor()


@situation("disk-space", detail="MiB free", fix="free space")
async def a_full_disk(world: World) -> Outcomes:
    world.state.path.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(world.state.path))
    world.enroll()
    with contextlib.suppress(OSError), (world.state.path / "filling").open("wb") as file:
        while True:
            file.write(bytes(65536))
            file.flush()
    world.is_running = False
    return await world.doctor()


@situation("key-permissions", detail="0644", fix="chmod 600")
async def an_identity_key_that_every_user_can_read(world: World) -> Outcomes:
    world.enroll()
    (world.state.path / "identity.pem").chmod(0o644)
    return await world.doctor()


@situation("journal", "warn", detail="agent.db", fix="restart")
async def a_damaged_journal(world: World) -> Outcomes:
    world.enroll()
    (world.state.path / "agent.db").write_bytes(b"not a database" * 1000)
    return await world.doctor()


# ------------------------------------------------------------------------------ the agent


@situation("daemon", detail="does not run", fix="service start")
async def a_stopped_daemon(world: World) -> Outcomes:
    world.is_running = False
    return await world.doctor()


@situation("version", "warn", detail="0.0.1", fix="restart")
async def an_old_daemon_still_runs(world: World) -> Outcomes:
    world.status["version"] = "0.0.1"
    return await world.doctor()


@situation("boot", detail="disabled", fix="service install")
async def a_disabled_unit(world: World) -> Outcomes:
    world.unit = world.unit.replace("UnitFileState=enabled", "UnitFileState=disabled")
    return await world.doctor()


@situation("boot", detail="masked", fix="unmask")
async def a_masked_unit(world: World) -> Outcomes:
    world.unit = "LoadState=masked\nUnitFileState=masked\nActiveState=inactive\nMainPID=0\n"
    world.is_running = False
    return await world.doctor()


@situation("boot", detail="has no service", fix="service install")
async def no_unit_and_no_daemon(world: World) -> Outcomes:
    world.unit = "LoadState=not-found\nUnitFileState=\nActiveState=inactive\nMainPID=0\n"
    world.is_running = False
    return await world.doctor()


@situation("other-agent", detail="another agent", fix="end it")
async def a_second_agent(world: World) -> Outcomes:
    other_home = world.home / "other"
    other_home.mkdir()
    config = write_config(other_home, "http://127.0.0.1:9")
    async with running_agent(config) as agent:
        await agent.until_logged("state in")
        outcomes = await world.doctor()
        await agent.stop()
    return outcomes


# ------------------------------------------------------------------------------ the network


@situation("gateway", detail="no default route", fix="DHCP")
async def no_gateway_and_a_service_in_another_network(world: World) -> Outcomes:
    run("ip", "route", "del", "default")
    world.base_url = "https://203.0.113.7"
    return await world.doctor()


@situation("gateway", "warn", detail="no default route", fix="DHCP")
async def no_gateway_and_a_service_on_this_machine(world: World) -> Outcomes:
    run("ip", "route", "del", "default")
    return await world.doctor()


@situation("interfaces", detail="no interface has an IPv4 address", fix="cable")
async def no_network_at_all(world: World) -> Outcomes:
    run("ip", "link", "del", "till0")
    world.base_url = "https://203.0.113.7"
    return await world.doctor()


@situation("multicast", "warn", detail="till0", fix="allow multicast")
async def an_interface_without_multicast(world: World) -> Outcomes:
    run("ip", "link", "set", "till0", "multicast", "off")
    return await world.doctor()


@situation("mdns-port", "warn", detail="5353", fix="avahi")
async def port_5353_taken_exclusively(world: World) -> Outcomes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as exclusive_socket:
        exclusive_socket.bind(("", 5353))
        return await world.doctor()


# ------------------------------------------------------------------------------ the connection


@situation("name-resolution", detail="cannot be resolved", fix="DNS")
async def no_dns(world: World) -> Outcomes:
    use_name_server(world, "127.0.0.1")
    world.base_url = "https://ops.venue.test"
    return await world.doctor()


@situation("gateway", detail="no default route", fix="DHCP")
async def no_dns_because_there_is_no_gateway(world: World) -> Outcomes:
    run("ip", "route", "del", "default")
    use_name_server(world, "203.0.113.53")
    world.base_url = "https://ops.venue.test"
    return await world.doctor()


@situation("name-resolution", detail="no result after")
async def a_silent_dns_server(world: World) -> Outcomes:
    drop_packets(UNUSED_ADDRESS)
    use_name_server(world, UNUSED_ADDRESS)
    world.hanging_check = "name-resolution"
    world.base_url = "https://ops.venue.test"
    return await world.doctor()


@situation("connection", detail="refuses", fix="service.base_url")
async def a_refused_connection(world: World) -> Outcomes:
    world.base_url = "http://127.0.0.1:9"
    return await world.doctor()


@situation("connection", detail="no answer in time", fix="firewall")
async def packets_that_vanish(world: World) -> Outcomes:
    drop_packets(UNUSED_ADDRESS)
    world.base_url = f"https://{UNUSED_ADDRESS}"
    return await world.doctor()


@situation("connection", detail="127.0.0.1:9", fix="service.proxy")
async def a_dead_proxy(world: World) -> Outcomes:
    world.base_url = "https://ops.venue.test"
    world.sections["service"] = 'proxy = "http://127.0.0.1:9"'
    return await world.doctor()


@situation("proxy", detail="403", fix="have the proxy allow ops.venue.test:443")
async def a_refusing_proxy(world: World) -> Outcomes:
    async with proxy(lambda _: Reply(403, b"no", "text/plain")) as port:
        world.base_url = "https://ops.venue.test"
        world.environment["HTTPS_PROXY"] = f"http://127.0.0.1:{port}"
        return await world.doctor()


@situation("proxy", detail="407", fix="user and password")
async def a_proxy_that_asks_for_a_password(world: World) -> Outcomes:
    async with proxy(lambda _: Reply(407, b"", "text/plain")) as port:
        world.base_url = "https://ops.venue.test"
        world.sections["service"] = f'proxy = "http://127.0.0.1:{port}"'
        return await world.doctor()


@situation("certificate", detail="Venue Test Authority", fix="service.ca_file")
async def an_unknown_authority(world: World) -> Outcomes:
    async with over_tls(world, is_trusted=False):
        return await world.doctor()


@situation("certificate", detail="Zscaler, which inspects TLS", fix="service.ca_file")
async def inspected_tls(world: World) -> Outcomes:
    async with over_tls(world, is_trusted=False, authority="Zscaler Intermediate CA"):
        return await world.doctor()


@situation("certificate", detail="expired on", fix="renewed")
async def an_expired_certificate(world: World) -> Outcomes:
    async with over_tls(world, is_trusted=True, ends=timedelta(days=-3)):
        return await world.doctor()


@situation("certificate", detail="not for this address", fix="service.base_url")
async def a_certificate_for_another_name(world: World) -> Outcomes:
    async with over_tls(world, is_trusted=True, host="other.venue.test"):
        return await world.doctor()


@situation("certificate", detail="no TLS", fix="service.base_url")
async def plain_http_where_tls_is_expected(world: World) -> Outcomes:
    world.base_url = world.base_url.replace("http:", "https:")
    return await world.doctor()


@situation("clock", detail="2 h behind", fix="timedatectl")
async def a_clock_two_hours_behind(world: World) -> Outcomes:
    async with date_headers_shifted(world, timedelta(hours=2)):
        return await world.doctor()


@situation("clock", detail="40 d behind", fix="timedatectl")
async def a_clock_before_the_certificate(world: World) -> Outcomes:
    async with (
        date_headers_shifted(world, timedelta(days=40)),
        over_tls(world, is_trusted=True, begins=timedelta(days=20)),
    ):
        return await world.doctor()


# ------------------------------------------------------------------------------ the service


@situation("captive-portal", detail="web page", fix="sign in")
async def a_captive_portal(world: World) -> Outcomes:
    page = Reply(200, b"<html>Welcome, guest</html>", "text/html; charset=utf-8")
    async with HttpServer(always(page)) as portal:
        world.base_url = portal.base_url
        return await world.doctor()


@situation("captive-portal", detail="redirected", fix="sign-in page")
async def a_redirect(world: World) -> Outcomes:
    redirect = Reply(302, b"", None, {"Location": "http://portal.venue.test/"})
    async with HttpServer(always(redirect)) as portal:
        world.base_url = portal.base_url
        return await world.doctor()


@situation("service", "warn", detail="an error of its own", fix="keeps trying")
async def a_failing_service(world: World) -> Outcomes:
    world.service.overrides["current"] = lambda: Reply(500, b"", None)
    return await world.doctor()


@situation("credential", detail="401", fix="valid key")
async def a_wrong_key(world: World) -> Outcomes:
    write_config(world.home, world.base_url)
    (world.home / "api-key").write_text("some-other-key\n")
    return await world.doctor()


@situation("write-grant", detail="has no write grant", fix="write grant")
async def a_key_that_only_reads(world: World) -> Outcomes:
    world.is_enrolled = False
    world.service.overrides["challenge"] = _problem(403, "read_only_key")
    return await world.doctor()


@situation("write-grant", detail="has no write grant", fix="write grant")
async def a_key_that_lost_its_write_grant(world: World) -> Outcomes:
    """The running agent's last call succeeded, but its heartbeats are refused."""
    world.status["last_heartbeat_at"] = "2026-01-01T00:00:00+00:00"
    world.service.overrides["challenge"] = _problem(403, "read_only_key")
    return await world.doctor()


@situation("location", detail="'loc-1'", fix="service.location_id")
async def a_wrong_location(world: World) -> Outcomes:
    world.is_enrolled = False
    world.service.overrides["challenge"] = _problem(403, "foreign_location")
    return await world.doctor()


@situation("binding", detail="revoked", fix="enroll --force")
async def a_revoked_device(world: World) -> Outcomes:
    world.enroll()
    world.service.overrides["current"] = lambda: Reply(200, b"null")
    world.status["is_revoked"] = True
    return await world.doctor()


@situation(None)
async def a_key_of_many_devices(world: World) -> Outcomes:
    """The service returns another device of the same API key. This is no sign of a revocation."""
    world.enroll()
    assert world.service.device is not None
    world.service.device = {
        **world.service.device,
        "instanceId": "00000000-0000-4000-8000-000000000001",
    }
    return await world.doctor()


@situation("binding", detail="not enrolled", fix="venue-agent enroll")
async def a_device_that_was_never_enrolled(world: World) -> Outcomes:
    world.is_enrolled = False
    return await world.doctor()


# ------------------------------------------------------------------------------ the real service


@situation(None)
async def the_reference_service(world: World) -> Outcomes:
    async with reference_service(world, "--write", "--location", "loc-1"):
        return await doctor_of_a_real_agent(world)


@situation("write-grant", detail="has no write grant", fix="write grant")
async def a_key_of_the_reference_service_that_only_reads(world: World) -> Outcomes:
    async with reference_service(world, "--location", "loc-1"):
        world.is_enrolled = False
        return await world.doctor()


@situation("location", detail="'loc-1'", fix="service.location_id")
async def a_key_of_the_reference_service_for_another_location(world: World) -> Outcomes:
    async with reference_service(world, "--write", "--location", "loc-2"):
        world.is_enrolled = False
        return await world.doctor()


@situation("binding", detail="revoked", fix="enroll --force")
async def a_device_that_the_reference_service_revoked(world: World) -> Outcomes:
    async with reference_service(world, "--write", "--location", "loc-1") as control:
        return await doctor_of_a_real_agent(world, control)


# ------------------------------------------------------------------------------ applications


@situation(
    "kiosk", detail="does not answer", fix="--remote-debugging-port=9 and its own --user-data-dir"
)
async def a_dead_kiosk_port(world: World) -> Outcomes:
    world.sections["application"] = 'kiosk_debug_url = "http://127.0.0.1:9"'
    return await world.doctor()


@situation("kiosk", detail="not a browser with DevTools", fix="kiosk_debug_url")
async def another_program_on_the_kiosk_port(world: World) -> Outcomes:
    async with HttpServer(always(Reply(200, b"{}"))) as program:
        world.sections["application"] = f'kiosk_debug_url = "{program.base_url}"'
        return await world.doctor()


@situation("print-system", detail="CUPS does not answer", fix="systemctl restart cups")
async def a_dead_spooler(world: World) -> Outcomes:
    run("mkdir", "-p", "/run/cups")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abandoned_socket:
        abandoned_socket.bind("/run/cups/cups.sock")
    return await world.doctor()
