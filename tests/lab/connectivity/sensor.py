"""Runs the sensors of a machine: executes commands from stdin, and prints JSON lines.

    python -m tests.lab.connectivity.sensor BASE_URL [NAME_SERVER ...]

The command ``link`` prints the state of the link. ``probe`` prints a sample of the path to the
service, and the cause of the path's fault, which is null if there is no fault. ``names`` prints the
answers of the name servers. When a link, an address or a route changes, the script prints
``"change"``.
"""

import asyncio
import json
import sys
from dataclasses import asdict

from agent.adapters.connectivity.sensors import SystemSensors
from agent.config.model import Service
from agent.rules.connectivity.cause import diagnose


async def run(base_url: str, servers: tuple[str, ...]) -> None:
    service = Service(base_url=base_url, location_id="loc-0001")
    sensors = SystemSensors(service, read_servers=lambda: servers)
    sensors.open(lambda: _print("change"))
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    _print("ready")
    while command := (await commands.readline()).decode().strip():
        match command:
            case "link":
                _print(asdict(sensors.read_link()))
            case "probe":
                sample = await sensors.probe(sensors.read_link())
                diagnosis = diagnose(sample)
                _print((asdict(sample), diagnosis.cause if diagnosis else None))
            case "names":
                _print([asdict(name_server) for name_server in await sensors.query_name_servers()])
    sensors.close()


def _print(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], tuple(sys.argv[2:])))
