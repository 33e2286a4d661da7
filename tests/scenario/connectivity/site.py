"""A venue with an agent on the till, and a service with TLS in the internet."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from agent.adapters.storage.record import read_record
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.status_file import StatusFile
from agent.tasks.record import GRACE_S
from agent.wire.payloads.history import History
from tests.fakes.strict_service import API_KEY
from tests.fakes.tls_front import make_authority, server_context
from tests.lab.connectivity.venue import GATEWAY, INTERNET, NAME, PORT, Venue, venue
from tests.scenario.agent_process import environment
from tests.scenario.forked_process import ForkedProcess, start_forked

CHECK_EVERY_S = 0.2
WITHIN_S = 300.0
NAME_SERVER_PROGRAMS = {
    "names": ("internet", "names", NAME, INTERNET),
    "forwarder": ("gateway", "names", NAME, INTERNET, INTERNET),
}
"""The name servers: the namespace of each, and the arguments of its program."""


@dataclass(slots=True)
class Site:
    """The venue, its service, and its agent.

    Args:
        home: the directory of the files of the service and the agent.
        heartbeat_s: the interval of the heartbeats.
        grace_s: seconds after the start of the agent in which interruptions are not recorded.
    """

    venue: Venue
    home: Path
    heartbeat_s: float
    grace_s: float
    _stack: contextlib.ExitStack
    _programs: dict[str, ForkedProcess] = field(default_factory=dict)

    def build(self) -> None:
        (self.home / "resolv.conf").write_text(f"nameserver {GATEWAY}\n")
        authority = make_authority(self.home)
        server_context(self.home, authority, host=NAME)
        (self.home / "api-key").write_text(API_KEY)
        (self.home / "api-key").chmod(0o600)
        (self.home / "config.toml").write_text(
            f'[service]\nbase_url = "https://{NAME}:{PORT}"\nlocation_id = "loc-1"\n'
            f'api_key_file = "{self.home / "api-key"}"\nca_file = "{authority.file}"\n'
            f'[device]\nstate_dir = "{self.home / "state"}"\n[network]\ndevice_only = true\n'
            f"[heartbeat]\ninterval_seconds = {self.heartbeat_s}\n"
        )
        # Move the gateway's rule for its own addresses from preference 0 to 10. Then a fault can
        # add a rule before it that also drops packets to the gateway itself.
        self.venue.ip("gateway", "rule add pref 10 lookup local")
        self.venue.ip("gateway", "rule del pref 0")
        self.venue.kill("service")  # the service without TLS that `venue` has started
        self.start_service()

    def start_service(self) -> None:
        device = str(self.home / "device.json")
        certificate = str(self.home / "server.pem")
        module = "tests.scenario.connectivity.service"
        self._start("service", "internet", module, str(PORT), certificate, device)
        self.wait_for(
            lambda: (self.home / "service.log").read_text().endswith("ready\n"),
            "the service is ready",
        )

    def start_agent(self) -> None:
        """Start the agent, and wait until it has a command stream.

        If ``grace_s`` differs from the agent's own `GRACE_S`, also wait until the gateway has
        answered a probe.
        """
        began_at = datetime.now(UTC).isoformat(timespec="seconds")
        config = str(self.home / "config.toml")
        if self.grace_s == GRACE_S:
            self._start("agent", "till", "agent", "run", "--config", config)
        else:
            module = "tests.scenario.connectivity.quick_agent"
            ready = self.home / "gateway-answered"
            ready.unlink(missing_ok=True)
            self._start("agent", "till", module, str(self.grace_s), config, str(ready))
            self.wait_for(ready.exists, "the gateway has answered a probe of the agent")
        status = StatusFile(StateDirectory(self.home / "state"))

        def is_connected() -> bool:
            assert self._programs["agent"].returncode is None, (self.home / "agent.log").read_text()
            with contextlib.suppress(OSError, ValueError):
                daemon_status = status.read()
                return (
                    daemon_status is not None
                    and daemon_status.started_at >= began_at
                    and bool(daemon_status.delivery)
                )
            return False

        self.wait_for(is_connected, "the agent has a command stream")

    def stop_agent(self, number: int = signal.SIGTERM) -> None:
        self.signal("agent", number)
        self._programs["agent"].join(WITHIN_S)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to the agent, the service or a name server."""
        if name in self.venue.programs:
            os.kill(self.venue.programs[name].pid, number)
        else:
            self._programs[name].send_signal(number)

    def kill(self, name: str) -> None:
        """End the service or a name server."""
        if name in self.venue.programs:
            self.venue.kill(name)
        else:
            self._programs[name].kill()
            self._programs[name].join(WITHIN_S)

    def restart(self, name: str) -> None:
        """Start the service or a name server again."""
        if name == "service":
            self.start_service()
        else:
            self.venue.start(name, *NAME_SERVER_PROGRAMS[name])

    def record(self, since: datetime) -> History:
        return read_record(StateDirectory(self.home / "state"), since, datetime.now(UTC))

    def wait_for(self, condition: Callable[[], bool], event: str) -> None:
        """Wait until a condition is true. Raises AssertionError if it is not true in time."""
        if not wait_until(WITHIN_S, condition):
            raise AssertionError(f"not within {WITHIN_S:g} s: {event}")

    def _start(self, name: str, namespace: str, module: str, *arguments: str) -> None:
        variables = {k: v for k, v in environment().items() if not k.lower().endswith("_proxy")}
        log = self.home / f"{name}.log"
        log.touch()
        program = start_forked(
            "tests.scenario.connectivity.inside", str(self.venue.pid_of(namespace)),
            str(self.home / "resolv.conf"), module, *arguments, environment=variables, output=log,
        )  # fmt: skip
        self._stack.callback(program.kill)
        self._programs[name] = program


def wait_until(seconds: float, condition: Callable[[], bool]) -> bool:
    """Wait until a condition is true. Return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not (is_true := condition()) and time.monotonic() < deadline:
        time.sleep(CHECK_EVERY_S)
    return is_true


@contextlib.contextmanager
def site(home: Path, heartbeat_s: float, grace_s: float = GRACE_S) -> Iterator[Site]:
    """Build a venue and start its service. Call `start_agent` to start the agent."""
    with venue() as new_venue, contextlib.ExitStack() as stack:
        new_site = Site(new_venue, home, heartbeat_s, grace_s, stack)
        new_site.build()
        yield new_site
