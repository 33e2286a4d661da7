"""Tests device URIs of all published CUPS backends, with queues of a real cupsd."""

import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from collectors.network.observations import KnownPrinter
from collectors.network.printers.cups import queue_printer, read_cups_printers
from tests.lab.namespaces import entering
from tests.lab.spooler import PROGRAMS, Spooler, queue_command
from tests.unit.collectors.network.printers.test_device_uri import PUBLISHED_URIS

pytestmark = [pytest.mark.lab, pytest.mark.needs("peers")]

REFUSED = {"", "tea4cups://socket://192.168.1.50:9100"}
"""URIs that CUPS 2.4 refuses for a queue."""

QUEUES = {
    f"q{number}": (kind, uri)
    for number, (kind, uri) in enumerate((k, u) for k, uris in PUBLISHED_URIS.items() for u in uris)
}


@pytest.fixture(scope="module")
def printers_by_queue() -> dict[str, KnownPrinter]:
    """Create a queue in a cupsd for each URI. Returns the printers read from it, by queue."""
    with tempfile.TemporaryDirectory(prefix="peers-") as path:
        Path(path).chmod(0o755)
        spooler = Spooler(Path(path) / "cups")
        schemes = {uri.partition(":")[0] for _, uri in QUEUES.values()} - {"", "file"}
        with subprocess.Popen([*entering(), *spooler.set_up(backends=schemes)]) as running:
            try:
                spooler.wait()
                refused = {
                    uri for name, (_, uri) in QUEUES.items() if not create_queue(spooler, name, uri)
                }
                cups = read_cups_printers(time.monotonic() + 60, spooler.environment)
            finally:
                running.kill()
    assert refused == REFUSED
    assert (cups.failures, cups.limitations) == ((), ())
    return {printer.id.removeprefix("cups:"): printer for printer in cups.printers}


def create_queue(spooler: Spooler, name: str, uri: str) -> bool:
    """Create a queue. Return False if CUPS refuses it."""
    command = queue_command(name, uri)
    result = subprocess.run(command, env=spooler.environment, check=False, capture_output=True)
    return result.returncode == 0


def test_each_queue_except_virtual_ones_is_read_as_a_printer(
    printers_by_queue: dict[str, KnownPrinter],
) -> None:
    for name, (kind, uri) in QUEUES.items():
        expected = None if uri in REFUSED else queue_printer(name, "", uri, None)
        assert (expected is None) == (kind == "virtual" or uri in REFUSED), uri
        assert (name in printers_by_queue) == (expected is not None), uri
        if expected is not None:
            assert bool(expected.backend) == (kind == "unknown"), uri
            assert replace(printers_by_queue[name], make_model=expected.make_model) == expected, uri


def test_every_installed_cups_backend_has_a_published_uri(
    printers_by_queue: dict[str, KnownPrinter],
) -> None:
    """Backends that only discover devices, such as snmp, are in ``PUBLISHED_URIS`` as well."""
    installed = {program.name for program in (PROGRAMS / "backend").iterdir()}
    published = {uri.partition(":")[0] for uris in PUBLISHED_URIS.values() for uri in uris}
    assert installed <= published
