"""Creates the faults for the test cases in `situations`: TLS with a private authority, proxies,
wrong clocks, dropped packets. It also runs the control plane as a service, and a real agent.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlsplit

from agent.doctor.check import CheckResult
from tests.fakes.http_server import Reply, Request
from tests.fakes.tls_front import make_authority, server_context, tls_front
from tests.scenario.agent_process import AgentProcess, running_agent, write_config
from tests.scenario.doctor.machine import Machine, run
from tests.scenario.forked_process import run_forked, start_forked

Outcomes = tuple[CheckResult, ...]


def always(reply: Reply) -> Callable[[Request], Awaitable[Reply]]:
    async def answer(_: Request) -> Reply:
        return reply

    return answer


@contextlib.asynccontextmanager
async def reference_service(machine: Machine, *key_options: str) -> AsyncIterator[dict[str, str]]:
    """Run the control plane with one API key, and point the agent's configuration to it.

    ``key_options`` are options of `venue-control keys create` for this key.
    Yield the environment variables with which `venue-control` calls this control plane.
    """
    database = ("--database", f"sqlite:///{machine.home / 'service.db'}")
    log = machine.home / "service.log"
    log.touch()  # `start_forked` may return before the fork has created the file
    process = start_forked(
        "controlplane", "serve", "--port", "0", *database, environment=dict(os.environ), output=log
    )
    try:
        async with asyncio.timeout(120):
            while "listening on " not in log.read_text():  # noqa: ASYNC110 - a file is watched
                await asyncio.sleep(0.02)
        machine.base_url = log.read_text().partition("listening on ")[2].split()[0]
        create = ("keys", "create", "--new-locations", *key_options)
        key = (await _control(*create, *database)).split()[0]
        write_config(machine.home, machine.base_url)
        (machine.home / "api-key").write_text(key + "\n")
        yield {"VENUE_CONTROL_URL": machine.base_url, "VENUE_CONTROL_API_KEY": key}
    finally:
        process.terminate()
        await process.wait()


async def _control(*words: str, **variables: str) -> str:
    code, output, errors = await run_forked(
        "controlplane", *words, environment={**os.environ, **variables}
    )
    assert code == 0, errors
    return output


async def doctor_of_a_real_agent(
    machine: Machine, control: dict[str, str] | None = None
) -> Outcomes:
    """Run doctor while an agent is online.

    If ``control`` is given, the agent is first revoked with `venue-control`, which gets these
    environment variables.
    """
    # The agent has its own lock, status file and enrollment, so the machine must not simulate them.
    machine.is_daemon_running = machine.is_enrolled = False
    async with running_agent(write_config(machine.home, machine.base_url)) as agent:
        async with asyncio.timeout(120):
            while not _status_of(agent).get("delivery"):  # noqa: ASYNC110 - a file is watched
                await asyncio.sleep(0.02)
        if control is not None:
            instance_id = _status_of(agent)["binding"]["instance_id"]
            await _control("revoke", instance_id, "--yes", **control)
        outcomes = await machine.doctor()
        await agent.stop()
    return outcomes


def _status_of(agent: AgentProcess) -> dict[str, Any]:
    try:
        return agent.status()
    except FileNotFoundError:
        return {}


def use_name_server(machine: Machine, address: str) -> None:
    file = machine.home / "resolv.conf"
    file.write_text(f"nameserver {address}\n")
    run("mount", "--bind", str(file), "/etc/resolv.conf")


def drop_packets(address: str) -> None:
    """Make the kernel send packets for ``address`` to a hardware address that no device has."""
    run("ip", "neigh", "replace", address, "lladdr", "02:00:00:00:00:99", "dev", "till0")


@contextlib.asynccontextmanager
async def over_tls(
    machine: Machine,
    *,
    is_trusted: bool,
    authority: str = "Venue Test Authority",
    url_host: str = "127.0.0.1",
    **validity: Any,
) -> AsyncIterator[None]:
    """Serve the machine's service over TLS, and set its address in the agent's configuration.

    Args:
        is_trusted: whether the configuration names the certificate of the authority.
        authority: the name of the authority.
        url_host: the host of the address, for which the certificate is valid by default.
        validity: further arguments of `server_context`.
    """
    issuer = make_authority(machine.home, authority)
    context = server_context(machine.home, issuer, **{"host": url_host, **validity})
    async with tls_front(urlsplit(machine.base_url).port or 0, context) as port:
        machine.base_url = f"https://{url_host}:{port}"
        machine.sections["service"] = f'ca_file = "{issuer.file}"' if is_trusted else ""
        yield


@contextlib.asynccontextmanager
async def date_headers_shifted(machine: Machine, ahead: timedelta) -> AsyncIterator[None]:
    """Run a relay in front of the service. It sets each Date header ahead by ``ahead``.

    It also closes each connection after the reply. It forwards everything else unchanged.
    """

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = urlsplit(service_url).port
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(h[15:]) for h in head.lower().split(b"\r\n") if h[:15] == b"content-length:"),
                0,
            )
            inner_writer.write(head + await reader.readexactly(length))
            answer = await inner_reader.readuntil(b"\r\n\r\n")
            date = format_datetime(datetime.now(UTC) + ahead, usegmt=True)
            lines = [h for h in answer.split(b"\r\n") if not h.lower().startswith(b"date:")]
            lines.insert(1, f"Date: {date}\r\nConnection: close".encode())
            writer.write(b"\r\n".join(lines))
            size = next((int(h[15:]) for h in lines if h[:15].lower() == b"content-length:"), 0)
            writer.write(await inner_reader.readexactly(size))
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            inner_writer.close()
            writer.close()

    service_url = machine.base_url
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    machine.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield
    finally:
        server.close()


@contextlib.asynccontextmanager
async def proxy(decide: Callable[[Request], Reply | None]) -> AsyncIterator[int]:
    """Run a proxy on loopback, and yield its port.

    ``decide`` returns the proxy's reply. If it returns None, the proxy opens a tunnel to the
    requested port, but always on loopback.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split(" ", 2)
            reply = decide(Request(method, target, {}, b""))
            if reply is not None:
                writer.write(f"HTTP/1.1 {reply.status} X\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                return
            _, _, port = target.rpartition(":")
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", int(port))
            writer.write(b"HTTP/1.1 200 X\r\n\r\n")
            await asyncio.gather(_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def open_tunnel(_: Request) -> None:
    return None


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
        sink.close()
