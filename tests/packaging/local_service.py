"""Runs the reference service as a process on loopback, and calls it as an operator does."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

LOCATION = "loc-proof"
START_WITHIN_S = 600.0
POLL_EVERY_S = 0.1

Json = dict[str, Any]
Result = TypeVar("Result")


class LocalService:
    """A running service. ``api_key`` has a write grant; the operator and the agent both use it."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self.base_url = base_url
        self.api_key = api_key

    def call(self, operation: str, **body: Any) -> Json:
        request = urllib.request.Request(
            f"{self.base_url}/api/public/v1/remoteControl/{operation}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            document: Json = json.load(response)
        return document

    def devices(self) -> list[Json]:
        devices: list[Json] = self.call("listDevices")["devices"]
        return devices

    def enrolled_device(self, within_s: float = 120) -> Json:
        """Wait until the only device is enrolled, and return it."""
        return until(lambda: next(iter(self.devices()), None), within_s)

    def request(self, instance_id: str, kind: str) -> str:
        reply = self.call("createRequest", instanceId=instance_id, kind=kind)
        return str(reply["requestId"])

    def request_row(self, instance_id: str, request_id: str) -> Json:
        detail = self.call("deviceDetail", instanceId=instance_id)
        return next(row for row in detail["requests"] if row["id"] == request_id)

    def report_of(self, instance_id: str, request_id: str) -> Json | None:
        """Return the whole report of a request, or None if it has not arrived."""
        for row in self.call("deviceDetail", instanceId=instance_id)["reports"]:
            if row["requestId"] == request_id:
                return self.call("reportDetail", reportId=row["reportId"])
        return None


def until(
    poll: Callable[[], Result | None], within_s: float, *, every_s: float = POLL_EVERY_S
) -> Result:
    """Call ``poll`` until its result is true, and return the result. Raises TimeoutError after
    ``within_s``.
    """
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        result = poll()
        if result:
            return result
        time.sleep(every_s)
    raise TimeoutError(f"no result within {within_s:g} s")


@contextmanager
def local_service(home: Path) -> Iterator[LocalService]:
    """Run the service while the body of the `with` statement runs. Its data is in ``home``."""
    database = f"sqlite:///{home / 'service.db'}"
    words = ("serve", "--port", "0", "--rate", "0", "--log-level", "warning")
    output = home / "service.out"
    with output.open("wb") as out, (home / "service.log").open("wb") as log:
        process = subprocess.Popen(
            (sys.executable, "-m", "controlplane", *words, "--database", database),
            stdout=out,
            stderr=log,
        )
        try:
            base_url = until(lambda: _address(output.read_text()), START_WITHIN_S)
            yield LocalService(base_url, _make_key(database))
        finally:
            process.terminate()
            process.wait(60)


def _address(output: str) -> str | None:
    _, separator, rest = output.partition("listening on ")
    return rest.split()[0] if separator and "\n" in rest else None


def _make_key(database: str) -> str:
    words = ("keys", "create", "--write", "--location", LOCATION, "--new-locations")
    result = subprocess.run(
        (sys.executable, "-m", "controlplane", *words, "--database", database),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    return result.stdout.split()[0]
