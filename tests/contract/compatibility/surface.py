"""The public surface that docs/compatibility.md promises to keep, read from code and documents.

`surface.json` is its recorded description. A line of it is never removed before the next major
version. To record an intended addition:

    python -m tests.contract.compatibility.surface --record
"""

import inspect
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter

from agent.adapters.identity import KEY_NAME
from agent.adapters.service_manager.contract import ServiceState
from agent.adapters.storage import database as agent_database
from agent.adapters.storage import device_record, printer_memory, state, status_file
from agent.adapters.storage.history import HistoryRow
from agent.adapters.storage.status_file import DaemonStatus
from agent.cli import main as agent_main
from agent.cli.status import _document as status_document
from agent.config.model import SECTIONS
from agent.doctor.check import CheckResult
from agent.doctor.document import document_of
from agent.rules.connectivity.document import record_document
from agent.rules.learned_printers import RememberedPrinters
from agent.wire.device_operations import EnrollmentRecord
from agent.wire.payloads.by_kind import PAYLOADS
from agent.wire.payloads.network import Printer
from controlplane.alerts.messages import body_of
from controlplane.cli import main as control_main
from controlplane.client import errors, operations, retail
from controlplane.client.operations import Operation
from controlplane.storage.monitoring_tables import Alert
from controlplane.web.observability.metrics import Metrics
from controlplane.web.openapi.interfaces import FACADE, RETAIL_API, document_bytes
from tests.packaging.program_cases import COMMON, commands
from tests.paths import ROOT
from tests.unit.agent.histories import NOW, SINCE, bad_venue

RECORD: Final = Path(__file__).with_name("surface.json")
MIGRATIONS: Final = ROOT / "controlplane/storage/migrations/versions"
HTTP_METHODS: Final = {"get", "post", "put", "patch", "delete"}
Surface = dict[str, list[str]]


def surface() -> Surface:
    """Return each part of the surface as a sorted list of lines."""
    parts = {
        "command line": command_lines(),
        "exit codes": exit_codes(),
        "configuration keys": configuration_keys(),
        "keys of --json": json_keys(),
        "service operations": operation_fields(),
        "metrics": metrics(),
        "webhook keys": (f"alert {path}" for path in _paths_of_value(_alert())),
        "typed client": client_methods(),
        "state directory": state_files(),
        "database steps": database_steps(),
    }
    return {name: sorted(set(lines)) for name, lines in parts.items()}


def command_lines() -> Iterator[str]:
    """Yield each command, and each of its options and optional arguments."""
    for command in commands():
        title = " ".join((command.program, *command.words))
        yield title
        for names in command.options:
            yield from (f"{title} {name}" for name in names)
        if not command.words:
            yield from (f"{title} {name}" for name in COMMON)


def exit_codes() -> Iterator[str]:
    for program, module in (("venue-agent", agent_main), ("venue-control", control_main)):
        codes = (code for name, code in inspect.getmembers(module) if name.startswith("EXIT_"))
        yield from (f"{program} {code}" for code in (0, *codes))
    for _, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, errors.CommandError):
            yield f"venue-control {error.exit_code}"


def configuration_keys() -> Iterator[str]:
    for section, model in SECTIONS.items():
        yield from (f"{section}.{key}" for key in model.model_fields)


def json_keys() -> Iterator[str]:
    """Yield the keys that the agent's commands print with --json, as paths in the document.

    The keys that venue-control prints are those of the service's operations.
    """
    check = CheckResult("a", "network", "ok", "fine")
    with tempfile.TemporaryDirectory() as directory:
        status, _ = status_document(state.StateDirectory(Path(directory)))
    outputs: dict[str, tuple[Any, ...]] = {
        "check": ({"printers": [Printer]},),
        "config check": ({"ok": None, "problems": None},),
        "config show": ({"section.key": {"value": None, "from": None}},),
        "doctor": (document_of([check], made_at="", duration_s=0),),
        "enroll": (EnrollmentRecord,),
        "history": ([HistoryRow],),
        "printers": (RememberedPrinters, {"states": [Printer]}),
        "service status": (ServiceState, {"last_exit": None}),
        "status": (status, {"daemon": DaemonStatus}),
        "timeline": (record_document(bad_venue(), NOW + timedelta(hours=1), is_enabled=True),),
        **{f"collect {kind}": (payload,) for kind, payload in PAYLOADS.items()},
    }
    for command, documents in outputs.items():
        for document in documents:
            yield from (f"venue-agent {command} {path}" for path in _paths_of_value(document))


def operation_fields() -> Iterator[str]:
    """Yield the operations of the OpenAPI documents, and the fields of their schemas."""
    for interface in (FACADE, RETAIL_API):
        described = json.loads(document_bytes(interface))
        for path, item in described["paths"].items():
            for method in HTTP_METHODS & item.keys():
                yield f"{method.upper()} {path}"
        for name, schema in described["components"]["schemas"].items():
            yield from (f"{name}.{field}" for field in schema.get("properties", ()))


def metrics() -> Iterator[str]:
    """Yield the metrics of docs/metrics.md, and the labels of the metrics declared in the code."""
    table = (ROOT / "docs/metrics.md").read_text("utf-8")
    yield from re.findall(r"^\| `(venue_control_\w+)`", table, re.MULTILINE)
    for collector in Metrics().registry._collector_to_names:
        for label in getattr(collector, "_labelnames", ()):
            yield f"{collector._name} {label}"  # type: ignore[attr-defined]


def client_methods() -> Iterator[str]:
    """Yield the public methods of the typed clients, with their parameters."""
    for client in (operations.OperationsClient, retail.RetailClient):
        for name, member in vars(client).items():
            if name.startswith("_"):
                continue
            title = f"{client.__name__}.{name}"
            yield title
            if not isinstance(member, Operation) and callable(member):
                parameters = list(inspect.signature(member).parameters)[1:]
                yield from (f"{title} {parameter}" for parameter in parameters)


def state_files() -> Iterator[str]:
    yield from (KEY_NAME, agent_database.NAME, state.LOCK_NAME, f"{state.QUARANTINE_NAME}/")
    for module in (device_record, printer_memory, status_file):
        yield from re.findall(r'"([a-z_]+\.json)"', inspect.getsource(module))


def database_steps() -> Iterator[str]:
    """Yield the revisions of the service's database.

    Later versions of the service can convert a database that has any of these revisions.
    """
    for path in MIGRATIONS.glob("*.py"):
        yield from re.findall(r'^revision = "(\d+)"', path.read_text(), re.MULTILINE)


def problems(recorded: Surface, current: Surface) -> list[str]:
    """Return one line for each difference, with what to do."""
    lines = []
    for part in sorted({*recorded, *current}):
        before, after = set(recorded.get(part, ())), set(current.get(part, ()))
        lines += [
            f"{part}: `{name}` is gone. Users of 1.x depend on it (docs/compatibility.md). Keep it,"
            " or in a major version delete its line in tests/contract/compatibility/surface.json"
            for name in sorted(before - after)
        ]
        lines += [
            f"{part}: `{name}` is new. Record it:"
            " python -m tests.contract.compatibility.surface --record"
            for name in sorted(after - before)
        ]
    return lines


def recorded() -> Surface:
    document: Surface = json.loads(RECORD.read_text("utf-8"))
    return document


def with_additions(before: Surface, current: Surface) -> Surface:
    """Return the record with the new lines. Nothing is removed from it."""
    return {
        part: sorted({*before.get(part, ()), *current.get(part, ())})
        for part in dict.fromkeys((*current, *before))
    }


def _alert() -> dict[str, Any]:
    alert = Alert(
        id=UUID(int=1), organization_id="o", location_id="l", instance="i",
        condition="offline", is_flapping=False, started_at=SINCE, detail=None,
    )  # fmt: skip
    return body_of(alert, "till", None, None, is_resolved=False)


def _paths_of_value(value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the paths of all keys of a JSON value, or of the JSON schema if the value is a type.

    ``prefix`` is the path of the value in its document.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            path = f"{prefix}.{key}".lstrip(".")
            yield path
            yield from _paths_of_value(inner, path)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _paths_of_value(inner, f"{prefix}[]")
    elif isinstance(value, type):
        schema = TypeAdapter(value).json_schema(mode="serialization", by_alias=True)
        yield from _paths_of_schema(schema, schema.get("$defs", {}), prefix, ())


def _paths_of_schema(
    schema: dict[str, Any], definitions: dict[str, Any], prefix: str, seen: tuple[str, ...]
) -> Iterator[str]:
    if reference := schema.get("$ref"):
        if reference not in seen:
            inner = definitions[reference.rpartition("/")[2]]
            yield from _paths_of_schema(inner, definitions, prefix, (*seen, reference))
        return
    for key, inner in schema.get("properties", {}).items():
        path = f"{prefix}.{key}".lstrip(".")
        yield path
        yield from _paths_of_schema(inner, definitions, path, seen)
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _paths_of_schema(inner, definitions, prefix, seen)
    items = [schema["items"]] if isinstance(schema.get("items"), dict) else []
    for inner in (*items, *schema.get("prefixItems", ())):
        yield from _paths_of_schema(inner, definitions, f"{prefix}[]", seen)


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        sys.exit(__doc__)
    before = recorded() if RECORD.exists() else {}
    text = json.dumps(with_additions(before, surface()), indent=1, ensure_ascii=False)
    RECORD.write_text(text + "\n", "utf-8")
