"""Starts the service and the agent of a demo. Their files are in the demo's directory."""

import json
from contextlib import closing
from pathlib import Path
from typing import Final

from agent.wire.operator_operations import Device
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.client.operations import OperationsClient
from controlplane.clock import system_clock
from controlplane.demo.environment import Environment
from controlplane.demo.processes import Processes, wait_for
from controlplane.storage.database import Database

LOCATION: Final = "demo-venue"
MACHINE: Final = "till-1"


def start_service(processes: Processes, environment: Environment) -> tuple[str, str]:
    """Start the service with a new API key. Returns its base URL and a sign-in link."""
    database_url = f"sqlite:///{processes.directory / 'service.db'}"
    key_file = processes.directory / "api-key"
    _create_key(database_url, key_file)
    descriptors = [socket_.fileno() for socket_ in environment.outside_sockets]
    service = processes.start(
        "service",
        *("controlplane.demo.service", database_url, str(key_file), *map(str, descriptors)),
        inherited_files=descriptors,
    )
    for socket_ in environment.outside_sockets:
        socket_.close()
    link = processes.wait_for_line("service", service, r"sign in at (\S+)")
    return processes.wait_for_line("service", service, r"listening on (\S+)"), link


def start_agent(
    processes: Processes, environment: Environment, client: OperationsClient, base_url: str
) -> Device:
    """Start the agent, and wait until it has enrolled and sent a heartbeat."""
    directory = processes.directory
    config = directory / "config.toml"
    config.write_text(_config(directory, base_url, environment), encoding="utf-8")
    agent = processes.start(
        "agent", "agent", "run", "--config", str(config), environment=environment.variables
    )
    return wait_for(
        lambda: next((d for d in client.devices()[0] if d.last_seen_at > d.created_at), None),
        agent,
        f"the agent did not enroll: see {directory / 'agent.log'}",
    )


def _create_key(database_url: str, key_file: Path) -> None:
    with closing(Database(database_url, connections=1)) as database:
        _, key = database.write(
            lambda session: create_key(
                session,
                name="demo",
                can_write=True,
                locations=[LOCATION],
                organization_id=DEFAULT_ORGANIZATION,
                now=system_clock(),
            )
        )
    key_file.touch(mode=0o600)
    key_file.write_text(key + "\n")


def _config(directory: Path, base_url: str, environment: Environment) -> str:
    quote = json.dumps  # a JSON string is a TOML basic string
    return (
        f"[service]\nbase_url = {quote(base_url)}\nlocation_id = {quote(LOCATION)}\n"
        f"api_key_file = {quote(str(directory / 'api-key'))}\n\n"
        f"[device]\nstate_dir = {quote(str(directory / 'state'))}\n"
        f"legacy_install_id = {quote(MACHINE)}\n\n[network]\n{environment.network}"
    )
