"""Opens a command stream as the agent does, and prints why it ended.

    python -m tests.lab.connectivity.stream BASE_URL

The stream uses plain HTTP. The configuration allows this only for a service on the same machine, so
`model_copy` replaces the address without a check.
"""

import asyncio
import sys

from agent.adapters.clock import SystemClock
from agent.adapters.service_client import ServiceClient
from agent.config.credential import ApiKeySource
from agent.config.model import Service
from agent.errors import ServiceUnavailable


async def run(base_url: str) -> None:
    service = Service(base_url="http://127.0.0.1", location_id="loc-0001")
    remote = service.model_copy(update={"base_url": base_url})
    client = ServiceClient(remote, ApiKeySource(None, "key-1"), SystemClock(), tcp_keep_alive=True)
    async with client.commands(stream=True) as stream:
        print("ready", flush=True)
        try:
            async for _ in stream.frames:
                pass
            print("closed", flush=True)
        except ServiceUnavailable as error:
            print(error.cause, flush=True)
    await client.close()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
