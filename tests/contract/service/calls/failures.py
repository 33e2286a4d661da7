"""The service's replies when its database fails: on the facade and on the retail API."""

from agent.wire.routes import CURRENT
from controlplane.retail.routes import UOMS
from controlplane.storage.database import DatabaseBusyError
from tests.contract.service.calls.recorder import Recorder
from tests.unit.controlplane.retail.test_refusals import client_of_broken_service


async def record(recorder: Recorder) -> None:
    for status, error in ((500, RuntimeError("a fault")), (503, DatabaseBusyError("busy"))):
        async with client_of_broken_service(error) as http:
            key = f"vck_{'A' * 43}"
            await recorder.call("POST", CURRENT, body={}, secret=key, http=http, title=f"{status}")
            token = "a.b.c"
            await recorder.call(
                "GET", UOMS, secret=token, http=http, title=f"{status} in the retail API"
            )
