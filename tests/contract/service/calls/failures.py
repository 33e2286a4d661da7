"""The service's replies when its database fails: on the facade and on the retail API."""

from agent.wire.routes import CURRENT
from controlplane.retail.routes import UOMS
from controlplane.storage.database import DatabaseBusyError
from tests.contract.service.calls.recorder import Recorder
from tests.unit.controlplane.retail.test_refusals import broken


async def record(kept: Recorder) -> None:
    for status, error in ((500, RuntimeError("a fault")), (503, DatabaseBusyError("busy"))):
        async with broken(error) as http:
            key = f"vck_{'A' * 43}"
            await kept.call("POST", CURRENT, sent={}, secret=key, http=http, of=f"{status}")
            token = "a.b.c"
            await kept.call("GET", UOMS, secret=token, http=http, of=f"{status} of retail")
