"""Situations with and without a real fault.

Each situation declares the only check for which doctor must report a problem, or None.
"""

import contextlib
import json
import socket
from collections.abc import Callable
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
from tests.scenario.doctor.machine import UNUSED_ADDRESS, Machine, Play, run


@dataclass(frozen=True)
class Situation:
    """A situation and the expected result of doctor.

    Doctor must report a problem with ``status`` for the check ``cause``, and for no other check.
    The detail and the fix of the problem must contain the texts ``detail`` and ``fix``. If
    ``cause`` is None, doctor must report no problem.
    """

    play: Play
    cause: str | None
    status: str
    detail: str
    fix: str


SITUATIONS: dict[str, Situation] = {}


def situation(
    cause: str | None, status: str = "fail", *, detail: str = "", fix: str = ""
) -> Callable[[Play], Play]:
    """Return a decorator that adds a function to `SITUATIONS`, under the name of the function."""

    def declare(play: Play) -> Play:
        SITUATIONS[play.__name__] = Situation(play, cause, status, detail, fix)
        return play

    return declare


def _problem(status: int, code: str) -> Callable[[], Reply]:
    body = json.dumps({"status": status, "code": code, "detail": code.replace("_", " ")}).encode()
    return lambda: Reply(status, body, "application/problem+json")


# ------------------------------------------------------------------------------ nothing is wrong


@situation(None)
async def healthy(machine: Machine) -> Outcomes:
    return await machine.doctor()


@situation(None)
async def a_real_agent_runs(machine: Machine) -> Outcomes:
    return await doctor_of_a_real_agent(machine)


@situation(None)
async def trusted_by_the_configured_authority(machine: Machine) -> Outcomes:
    async with over_tls(machine, is_trusted=True):
        return await machine.doctor()


@situation(None)
async def through_a_proxy(machine: Machine) -> Outcomes:
    # The service needs a name, because the agent calls addresses on loopback without the proxy.
    # No name server knows this name. The proxy connects to loopback, whatever the name is.
    tls = over_tls(machine, is_trusted=True, url_host="ops.venue.test")
    async with tls, proxy(open_tunnel) as port:
        machine.sections["service"] += f'\nproxy = "http://user:secret@127.0.0.1:{port}"'
        return await machine.doctor()


@situation(None)
async def a_service_on_this_machine_and_dead_proxies(machine: Machine) -> Outcomes:
    machine.sections["service"] = 'proxy = "http://127.0.0.1:9"'
    machine.environment["HTTP_PROXY"] = machine.environment["http_proxy"] = "http://127.0.0.1:9"
    return await machine.doctor()


# ------------------------------------------------------------------------------ the configuration


@situation("configuration", detail="did you mean 'interval_seconds'", fix="config check")
async def a_mistyped_key(machine: Machine) -> Outcomes:
    machine.sections["heartbeat"] = "intervall_seconds = 5"
    machine.is_daemon_running = False
    return await machine.doctor()


@situation("api-key", detail="No such file", fix="write grant")
async def no_key_file(machine: Machine) -> Outcomes:
    write_config(machine.home, machine.base_url)
    missing_file = machine.home / "elsewhere"
    machine.environment["VENUE_AGENT_SERVICE__API_KEY_FILE"] = str(missing_file)
    return await machine.doctor()


@situation("trust-anchors", detail="no PEM certificate", fix="service.ca_file")
async def a_broken_ca_file(machine: Machine) -> Outcomes:
    ca_file = machine.home / "ca.pem"
    ca_file.write_text("not a certificate")
    async with over_tls(machine, is_trusted=False):
        machine.sections["service"] = f'ca_file = "{ca_file}"'
        return await machine.doctor()


# ------------------------------------------------------------------------------ this machine


@situation("state-directory", detail="Read-only file system", fix="repair")
async def a_read_only_state_directory(machine: Machine) -> Outcomes:
    machine.enroll()
    machine.is_daemon_running = False
    path = str(machine.state.path)
    run("mount", "--bind", path, path)
    run("mount", "-o", "remount,bind,ro", path)
    return await machine.doctor()


@situation("state-directory", detail="not a directory", fix="device.state_dir")
async def a_file_in_place_of_the_state_directory(machine: Machine) -> Outcomes:
    machine.state.path.write_text("")
    machine.is_daemon_running = False
    return await machine.doctor()


@situation("disk-space", detail="MiB free", fix="make space")
async def a_full_disk(machine: Machine) -> Outcomes:
    machine.state.path.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(machine.state.path))
    machine.enroll()
    with contextlib.suppress(OSError), (machine.state.path / "filling").open("wb") as file:
        while True:
            file.write(bytes(65536))
            file.flush()
    machine.is_daemon_running = False
    return await machine.doctor()


@situation("key-permissions", detail="0644", fix="chmod 600")
async def an_identity_key_that_every_user_can_read(machine: Machine) -> Outcomes:
    machine.enroll()
    (machine.state.path / "identity.pem").chmod(0o644)
    return await machine.doctor()


@situation("journal", "warn", detail="agent.db", fix="restart")
async def a_damaged_journal(machine: Machine) -> Outcomes:
    machine.enroll()
    (machine.state.path / "agent.db").write_bytes(b"not a database" * 1000)
    return await machine.doctor()


# ------------------------------------------------------------------------------ the agent


@situation("daemon", detail="does not run", fix="service start")
async def a_stopped_daemon(machine: Machine) -> Outcomes:
    machine.is_daemon_running = False
    return await machine.doctor()


@situation("version", "warn", detail="0.0.1", fix="restart")
async def an_old_daemon_still_runs(machine: Machine) -> Outcomes:
    machine.status["version"] = "0.0.1"
    return await machine.doctor()


@situation("boot", detail="disabled", fix="service install")
async def a_disabled_unit(machine: Machine) -> Outcomes:
    machine.unit = machine.unit.replace("UnitFileState=enabled", "UnitFileState=disabled")
    return await machine.doctor()


@situation("boot", detail="masked", fix="unmask")
async def a_masked_unit(machine: Machine) -> Outcomes:
    machine.unit = "LoadState=masked\nUnitFileState=masked\nActiveState=inactive\nMainPID=0\n"
    machine.is_daemon_running = False
    return await machine.doctor()


@situation("boot", detail="has no service", fix="service install")
async def no_unit_and_no_daemon(machine: Machine) -> Outcomes:
    machine.unit = "LoadState=not-found\nUnitFileState=\nActiveState=inactive\nMainPID=0\n"
    machine.is_daemon_running = False
    return await machine.doctor()


@situation("other-agent", detail="another agent", fix="end it")
async def a_second_agent(machine: Machine) -> Outcomes:
    other_home = machine.home / "other"
    other_home.mkdir()
    config = write_config(other_home, "http://127.0.0.1:9")
    async with running_agent(config) as agent:
        await agent.until_logged("state in")
        outcomes = await machine.doctor()
        await agent.stop()
    return outcomes


# ------------------------------------------------------------------------------ the network


@situation("gateway", detail="no default route", fix="DHCP")
async def no_gateway_and_a_service_in_another_network(machine: Machine) -> Outcomes:
    run("ip", "route", "del", "default")
    machine.base_url = "https://203.0.113.7"
    return await machine.doctor()


@situation("gateway", "warn", detail="no default route", fix="DHCP")
async def no_gateway_and_a_service_on_this_machine(machine: Machine) -> Outcomes:
    run("ip", "route", "del", "default")
    return await machine.doctor()


@situation("interfaces", detail="no interface has an IPv4 address", fix="cable")
async def no_network_at_all(machine: Machine) -> Outcomes:
    run("ip", "link", "del", "till0")
    machine.base_url = "https://203.0.113.7"
    return await machine.doctor()


@situation("multicast", "warn", detail="till0", fix="allow multicast")
async def an_interface_without_multicast(machine: Machine) -> Outcomes:
    run("ip", "link", "set", "till0", "multicast", "off")
    return await machine.doctor()


@situation("mdns-port", "warn", detail="5353", fix="avahi")
async def port_5353_taken_exclusively(machine: Machine) -> Outcomes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as exclusive_socket:
        exclusive_socket.bind(("", 5353))
        return await machine.doctor()


# ------------------------------------------------------------------------------ the connection


@situation("name-resolution", detail="cannot be resolved", fix="DNS")
async def no_dns(machine: Machine) -> Outcomes:
    use_name_server(machine, "127.0.0.1")
    machine.base_url = "https://ops.venue.test"
    return await machine.doctor()


@situation("gateway", detail="no default route", fix="DHCP")
async def no_dns_because_there_is_no_gateway(machine: Machine) -> Outcomes:
    run("ip", "route", "del", "default")
    use_name_server(machine, "203.0.113.53")
    machine.base_url = "https://ops.venue.test"
    return await machine.doctor()


@situation("name-resolution", detail="no result after")
async def a_silent_dns_server(machine: Machine) -> Outcomes:
    drop_packets(UNUSED_ADDRESS)
    use_name_server(machine, UNUSED_ADDRESS)
    machine.hanging_check = "name-resolution"
    machine.base_url = "https://ops.venue.test"
    return await machine.doctor()


@situation("connection", detail="refuses", fix="service.base_url")
async def a_refused_connection(machine: Machine) -> Outcomes:
    machine.base_url = "http://127.0.0.1:9"
    return await machine.doctor()


@situation("connection", detail="no answer in time", fix="firewall")
async def packets_that_vanish(machine: Machine) -> Outcomes:
    drop_packets(UNUSED_ADDRESS)
    machine.base_url = f"https://{UNUSED_ADDRESS}"
    return await machine.doctor()


@situation("connection", detail="127.0.0.1:9", fix="service.proxy")
async def a_dead_proxy(machine: Machine) -> Outcomes:
    machine.base_url = "https://ops.venue.test"
    machine.sections["service"] = 'proxy = "http://127.0.0.1:9"'
    return await machine.doctor()


@situation("proxy", detail="403", fix="have the proxy allow ops.venue.test:443")
async def a_refusing_proxy(machine: Machine) -> Outcomes:
    async with proxy(lambda _: Reply(403, b"no", "text/plain")) as port:
        machine.base_url = "https://ops.venue.test"
        machine.environment["HTTPS_PROXY"] = f"http://127.0.0.1:{port}"
        return await machine.doctor()


@situation("proxy", detail="407", fix="user and password")
async def a_proxy_that_asks_for_a_password(machine: Machine) -> Outcomes:
    async with proxy(lambda _: Reply(407, b"", "text/plain")) as port:
        machine.base_url = "https://ops.venue.test"
        machine.sections["service"] = f'proxy = "http://127.0.0.1:{port}"'
        return await machine.doctor()


@situation("certificate", detail="Venue Test Authority", fix="service.ca_file")
async def an_unknown_authority(machine: Machine) -> Outcomes:
    async with over_tls(machine, is_trusted=False):
        return await machine.doctor()


@situation("certificate", detail="Zscaler, which inspects TLS", fix="service.ca_file")
async def inspected_tls(machine: Machine) -> Outcomes:
    async with over_tls(machine, is_trusted=False, authority="Zscaler Intermediate CA"):
        return await machine.doctor()


@situation("certificate", detail="expired on", fix="renewed")
async def an_expired_certificate(machine: Machine) -> Outcomes:
    async with over_tls(machine, is_trusted=True, ends=timedelta(days=-3)):
        return await machine.doctor()


@situation("certificate", detail="not for this address", fix="service.base_url")
async def a_certificate_for_another_name(machine: Machine) -> Outcomes:
    async with over_tls(machine, is_trusted=True, host="other.venue.test"):
        return await machine.doctor()


@situation("certificate", detail="no TLS", fix="service.base_url")
async def plain_http_where_tls_is_expected(machine: Machine) -> Outcomes:
    machine.base_url = machine.base_url.replace("http:", "https:")
    return await machine.doctor()


@situation("clock", detail="2 h behind", fix="timedatectl")
async def a_clock_two_hours_behind(machine: Machine) -> Outcomes:
    async with date_headers_shifted(machine, timedelta(hours=2)):
        return await machine.doctor()


@situation("clock", detail="40 d behind", fix="timedatectl")
async def a_clock_before_the_certificate(machine: Machine) -> Outcomes:
    async with (
        date_headers_shifted(machine, timedelta(days=40)),
        over_tls(machine, is_trusted=True, begins=timedelta(days=20)),
    ):
        return await machine.doctor()


# ------------------------------------------------------------------------------ the service


@situation("captive-portal", detail="web page", fix="sign in")
async def a_captive_portal(machine: Machine) -> Outcomes:
    page = Reply(200, b"<html>Welcome, guest</html>", "text/html; charset=utf-8")
    async with HttpServer(always(page)) as portal:
        machine.base_url = portal.base_url
        return await machine.doctor()


@situation("captive-portal", detail="redirected", fix="sign-in page")
async def a_redirect(machine: Machine) -> Outcomes:
    redirect = Reply(302, b"", None, {"Location": "http://portal.venue.test/"})
    async with HttpServer(always(redirect)) as portal:
        machine.base_url = portal.base_url
        return await machine.doctor()


@situation("service", "warn", detail="an error of its own", fix="keeps trying")
async def a_failing_service(machine: Machine) -> Outcomes:
    machine.service.overrides["current"] = lambda: Reply(500, b"", None)
    return await machine.doctor()


@situation("credential", detail="401", fix="valid key")
async def a_wrong_key(machine: Machine) -> Outcomes:
    write_config(machine.home, machine.base_url)
    (machine.home / "api-key").write_text("some-other-key\n")
    return await machine.doctor()


@situation("write-grant", detail="has no write grant", fix="write grant")
async def a_key_that_only_reads(machine: Machine) -> Outcomes:
    machine.is_enrolled = False
    machine.service.overrides["challenge"] = _problem(403, "read_only_key")
    return await machine.doctor()


@situation("write-grant", detail="has no write grant", fix="write grant")
async def a_key_that_lost_its_write_grant(machine: Machine) -> Outcomes:
    """The agent was enrolled when its key could write. Now the service refuses its heartbeats."""
    machine.status["last_heartbeat_at"] = "2026-01-01T00:00:00+00:00"
    machine.service.overrides["challenge"] = _problem(403, "read_only_key")
    return await machine.doctor()


@situation("location", detail="'loc-1'", fix="service.location_id")
async def a_wrong_location(machine: Machine) -> Outcomes:
    machine.is_enrolled = False
    machine.service.overrides["challenge"] = _problem(403, "foreign_location")
    return await machine.doctor()


@situation("binding", detail="revoked", fix="enroll --force")
async def a_revoked_device(machine: Machine) -> Outcomes:
    machine.enroll()
    machine.service.overrides["current"] = lambda: Reply(200, b"null")
    machine.status["is_revoked"] = True
    return await machine.doctor()


@situation(None)
async def a_key_of_many_devices(machine: Machine) -> Outcomes:
    """The service returns another device of the same API key. This is no sign of a revocation."""
    machine.enroll()
    assert machine.service.device is not None
    machine.service.device = {
        **machine.service.device,
        "instanceId": "00000000-0000-4000-8000-000000000001",
    }
    return await machine.doctor()


@situation("binding", detail="not enrolled", fix="venue-agent enroll")
async def a_device_that_was_never_enrolled(machine: Machine) -> Outcomes:
    machine.is_enrolled = False
    return await machine.doctor()


# ------------------------------------------------------------------------------ the real service


@situation(None)
async def the_reference_service(machine: Machine) -> Outcomes:
    async with reference_service(machine, "--write", "--location", "loc-1"):
        return await doctor_of_a_real_agent(machine)


@situation("write-grant", detail="has no write grant", fix="write grant")
async def a_key_of_the_reference_service_that_only_reads(machine: Machine) -> Outcomes:
    async with reference_service(machine, "--location", "loc-1"):
        machine.is_enrolled = False
        return await machine.doctor()


@situation("location", detail="'loc-1'", fix="service.location_id")
async def a_key_of_the_reference_service_for_another_location(machine: Machine) -> Outcomes:
    async with reference_service(machine, "--write", "--location", "loc-2"):
        machine.is_enrolled = False
        return await machine.doctor()


@situation("binding", detail="revoked", fix="enroll --force")
async def a_device_that_the_reference_service_revoked(machine: Machine) -> Outcomes:
    async with reference_service(machine, "--write", "--location", "loc-1") as control:
        return await doctor_of_a_real_agent(machine, control)


# ------------------------------------------------------------------------------ applications


@situation(
    "kiosk", detail="does not answer", fix="--remote-debugging-port=9 and its own --user-data-dir"
)
async def a_dead_kiosk_port(machine: Machine) -> Outcomes:
    machine.sections["application"] = 'kiosk_debug_url = "http://127.0.0.1:9"'
    return await machine.doctor()


@situation("kiosk", detail="not a browser with DevTools", fix="kiosk_debug_url")
async def another_program_on_the_kiosk_port(machine: Machine) -> Outcomes:
    async with HttpServer(always(Reply(200, b"{}"))) as program:
        machine.sections["application"] = f'kiosk_debug_url = "{program.base_url}"'
        return await machine.doctor()


@situation("print-system", detail="CUPS does not answer", fix="systemctl restart cups")
async def a_dead_spooler(machine: Machine) -> Outcomes:
    run("mkdir", "-p", "/run/cups")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abandoned_socket:
        abandoned_socket.bind("/run/cups/cups.sock")
    return await machine.doctor()
