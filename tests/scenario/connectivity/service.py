"""`StrictService` with TLS, as a program that can be killed and started again.

    python -m tests.scenario.connectivity.service PORT CERTIFICATE DEVICE

The program stores the enrolled device in the file DEVICE. After SIGUSR1 it answers each call of
the enrolled device with 503, after SIGUSR2 with 401, and after SIGHUP as usual.
"""

import asyncio
import json
import signal
import ssl
import sys
from pathlib import Path

from tests.fakes.http_server import Reply
from tests.fakes.strict_service import StrictService

_STATUS = {signal.SIGUSR1: 503, signal.SIGUSR2: 401, signal.SIGHUP: None}
_OPERATIONS = ("heartbeat", "onCommands", "current", "acknowledge", "submitResult")
"""The operations that an enrolled device calls. The signals change only their replies."""


async def serve(port: int, certificate: Path, device: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    service = StrictService()
    if device.exists():
        service.device = json.loads(device.read_text())
        assert service.device is not None
        service.binding_id = service.device["bindingId"]
    for number, status in _STATUS.items():
        asyncio.get_running_loop().add_signal_handler(number, _answer, service, status)
    await service.listen("0.0.0.0", port, tls)
    print("ready", flush=True)
    await service.until(lambda: service.device is not None, within_s=3600)
    device.write_text(json.dumps(service.device))
    await asyncio.Event().wait()


def _answer(service: StrictService, status: int | None) -> None:
    """Answer each call of an enrolled device with ``status``, or as usual if it is None."""
    service.overrides.clear()
    if status is not None:
        reply = Reply(status, media_type=None)
        service.overrides.update(dict.fromkeys(_OPERATIONS, lambda: reply))


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
