"""The bodies of the devices' calls, and the payloads of reports, as JSON Schema.

They are transcribed from the text of the contract alone. This module shares no code with the agent.
Its schemas accept exactly what the contract permits. String lengths are counted in UTF-16 code
units, as the service counts them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend

from tests.fakes.schemas.compiled import CompiledValidator

Schema = dict[str, Any]

SAFE = 9007199254740991
"""2**53 - 1, the greatest integer that the contract permits: JavaScript represents it exactly."""

UUID: Schema = {
    "type": "string",
    "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
}
TEXT: Schema = {"type": "string", "maxLength": 1024}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": 1024}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": SAFE}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}


def enum(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def array(of: Schema, count_max: int | None = None) -> Schema:
    return {"type": "array", "items": of} | ({} if count_max is None else {"maxItems": count_max})


def exact(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these keys and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def null_or(*schemas: Schema) -> Schema:
    return {"anyOf": [*schemas, {"type": "null"}]}


def each(names: str, schema: Schema) -> dict[str, Schema]:
    """Return fields that have the same schema. Spaces separate their names."""
    return dict.fromkeys(names.split(), schema)


KIND = enum("network", "application")
TEXT_OR_NULL = null_or(TEXT)

CHALLENGE = exact(
    {
        "instanceId": UUID,
        "publicKey": {"type": "string", "minLength": 88, "maxLength": 88},
        "platform": enum("android", "ios", "macos", "windows", "linux"),
        "locationId": {"type": "string", "minLength": 1, "maxLength": 128},
        "legacyInstallId": {"type": "string", "minLength": 1, "maxLength": 128},
        "capabilities": array({"type": "string", "minLength": 1, "maxLength": 128}, 32),
    },
    {"appVersion": {"type": "string", "maxLength": 128}},
)
ENROLL = exact(
    {"challengeId": UUID, "signature": {"type": "string", "minLength": 8, "maxLength": 128}}
)
EMPTY = exact({})
HEARTBEAT = exact({"bindingId": UUID, "foreground": BOOLEAN})
ACKNOWLEDGE = exact({"requestId": UUID, "bindingId": UUID, "status": enum("received", "running")})
SUBMIT_RESULT = exact(
    {
        "bindingId": UUID,
        "reportId": UUID,
        "kind": KIND,
        "outcome": enum("completed", "partial", "failed"),
    },
    {
        "requestId": UUID,
        "report": {},
        "failureReason": enum("collection-failed", "execution-interrupted"),
    },
)

_COMMON: dict[str, Schema] = {
    "reportId": ID,
    "startedAt": TEXT,
    "finishedAt": TEXT,
    "completeness": enum("complete", "partial", "limited"),
    "identity": exact({"organizationId": ID, "locationId": ID, "installId": ID}),
    "environment": exact(
        {
            "platform": enum("native", "browser"),
            "userAgent": TEXT,
            "osPlatform": TEXT_OR_NULL,
            "nativeAppVersion": TEXT_OR_NULL,
            "nativeProtocolVersion": null_or(COUNT),
            "nativeCapabilities": array(TEXT, 128),
            "webRelease": TEXT_OR_NULL,
        }
    ),
    "failures": array(exact({"step": ID, "reason": TEXT}), 128),
    "limitations": array(TEXT, 128),
}

RUNNING = exact({"state": {"const": "running"}})
SUCCEEDED = exact({"state": {"const": "succeeded"}})
FAILED = exact({"state": {"const": "failed"}, "reason": TEXT})
UNSUPPORTED = exact({"state": {"const": "unsupported"}, "reason": TEXT})
_DISCOVERY_STATE: Schema = {"anyOf": [RUNNING, SUCCEEDED, FAILED]}
_MAP_STATE: Schema = {"anyOf": [RUNNING, SUCCEEDED, FAILED, UNSUPPORTED]}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}

ENDPOINT = exact(
    {
        "address": TEXT,
        "host": TEXT,
        "port": _PORT,
        "label": TEXT,
        "model": TEXT_OR_NULL,
        "discoveredBy": array(enum("mdns", "scan"), 2),
        "status": enum("reachable", "discovered"),
        "macAddress": TEXT_OR_NULL,
        "matchedPrinterIds": array(ID, 64),
    }
)
PRINTER = exact(
    {
        "id": ID,
        "name": TEXT,
        "transport": enum("network", "serial", "ble", "usb"),
        "address": TEXT_OR_NULL,
        "status": enum("reachable", "unreachable", "unknown"),
        "reason": TEXT_OR_NULL,
        "matchedEndpoint": TEXT_OR_NULL,
    }
)
HOST = exact(
    {
        "address": TEXT,
        "services": array(
            exact(
                {"port": NUMBER, "source": enum("mdns", "tcp")},
                {"name": TEXT, "type": TEXT, "reachable": BOOLEAN},
            )
        ),
        "reachability": enum("reachable", "unknown"),
        "sources": array(enum("local", "gateway", "mdns", "tcp")),
    },
    {"interfaceName": TEXT, "hostname": TEXT, "macAddress": TEXT, "latencyMs": NUMBER},
)
MAP = exact(
    {
        "state": enum("scanning", "completed", "cancelled"),
        "os": exact({"platform": TEXT, "version": TEXT_OR_NULL}),
        "interfaces": array(
            exact(
                {
                    "name": TEXT,
                    "addresses": array(
                        exact(
                            {
                                "address": TEXT,
                                "family": enum("ipv4", "ipv6"),
                                "prefixLength": NUMBER,
                            }
                        )
                    ),
                    "gateways": array(TEXT),
                },
                {"macAddress": TEXT},
            )
        ),
        "hosts": array(HOST),
        "sources": exact({"interfaces": _MAP_STATE, "mdns": _MAP_STATE, "scan": _MAP_STATE}),
        "limitations": array(TEXT),
        "bounds": exact(
            {
                "maxHosts": NUMBER,
                "maxServices": NUMBER,
                "maxDurationMs": NUMBER,
                "ports": array(NUMBER),
            }
        ),
        "truncated": BOOLEAN,
    }
)


NETWORK_PAYLOAD = exact(
    {
        **_COMMON,
        "version": {"const": 2},
        "scope": TEXT,
        "discovery": null_or(exact({"mdns": _DISCOVERY_STATE, "scan": _DISCOVERY_STATE})),
        "endpoints": array(ENDPOINT, 256),
        "endpointsOmitted": COUNT,
        "printers": null_or(array(PRINTER, 64)),
        "networkMap": null_or(MAP),
        "unavailable": exact(
            {}, {"macAddress": TEXT, "interfaces": TEXT, "gateway": TEXT, "osVersion": TEXT}
        ),
    }
)

_STATUSES = ("unsupported", "permission-denied", "not-applicable", "collection-failed")
FIELD = exact(
    {"key": TEXT, "source": TEXT, "status": enum("available", *_STATUSES)},
    {"value": {"anyOf": [TEXT, NUMBER, BOOLEAN, array(TEXT)]}, "reason": TEXT},
)
_BROWSER_TEXT: Schema = {"type": "string", "maxLength": 256}
_BROWSER_SOURCE: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
_BROWSER_KEYS = enum(
    *(
        f"browser.{name}"
        for name in (
            "userAgent platform logicalProcessors approximateMemoryGiB heapUsedBytes"
            " heapLimitBytes online connectionType effectiveConnectionType downlinkMbps"
            " roundTripMs saveData language languages timeZone displayWidthPixels"
            " displayHeightPixels pixelRatio orientation visibility focused pageUptimeSeconds"
            " secureContext cookiesEnabled originQuotaBytes originUsageBytes"
            " batteryLevelFraction batteryCharging permission.geolocation"
            " permission.notifications permission.camera permission.microphone"
            " bluetoothAuthorizedDevices usbAuthorizedDevices"
        ).split()
    )
)
BROWSER_AVAILABLE = exact(
    {
        "key": _BROWSER_KEYS,
        "source": _BROWSER_SOURCE,
        "status": {"const": "available"},
        "value": {"anyOf": [_BROWSER_TEXT, NUMBER, BOOLEAN, array(_BROWSER_TEXT, 32)]},
    }
)
BROWSER_NOT_AVAILABLE = exact(
    {
        "key": _BROWSER_KEYS,
        "source": _BROWSER_SOURCE,
        "status": enum(*_STATUSES),
        "reason": {"type": "string", "minLength": 1, "maxLength": 512},
    }
)
BROWSER_FIELD: Schema = {"anyOf": [BROWSER_AVAILABLE, BROWSER_NOT_AVAILABLE]}

APPLICATION_PAYLOAD = exact(
    {
        **_COMMON,
        "version": {"const": 1},
        "reportType": {"const": "application"},
        "snapshot": exact(
            {
                "version": {"const": 1},
                "collectedAt": TEXT,
                "durationMs": NUMBER,
                "fields": array(FIELD),
                "interfaces": array(exact({"id": TEXT, "fields": array(FIELD)})),
                "peripherals": array(
                    exact({"id": TEXT, "fields": array(FIELD), "kind": enum("bluetooth", "usb")})
                ),
                "limitations": array(TEXT),
                "truncated": BOOLEAN,
            }
        ),
        "browserFields": array(BROWSER_FIELD, 34),
    }
)


class NotFittingError(AssertionError):
    """A reply of the service does not match the contract document."""


def _utf16_units(text: str) -> int:
    return sum(2 if ord(character) > 0xFFFF else 1 for character in text)


def _max_length(_: Any, limit: int, value: Any, __: Any) -> Iterator[ValidationError]:
    """Check the keyword ``maxLength``. jsonschema calls this function."""
    if isinstance(value, str) and _utf16_units(value) > limit:
        yield ValidationError(
            f"{value[:40]!r}… has {_utf16_units(value)} units, the maximum is {limit}"
        )


_Validator = extend(Draft202012Validator, {"maxLength": _max_length})


_compiled: dict[int, tuple[Schema, CompiledValidator]] = {}
"""Validators by the ``id()`` of their schemas. The schemas are stored with them, because Python
could use the ``id()`` of a deleted schema again."""


def validator(
    schema: Schema, formats: FormatChecker, own_formats: Mapping[str, Any] | None = None
) -> CompiledValidator:
    """Return a validator that counts string lengths in UTF-16 code units, as the service does.

    Args:
        own_formats: functions for the formats that JSON Schema does not define.
    """
    validator = _Validator(schema, format_checker=formats)
    return CompiledValidator(validator, own_formats, counts_utf16=True)


def violations(schema: Schema, document: Any) -> list[str]:
    """Return a line for each way in which ``document`` breaks ``schema``."""
    if id(schema) not in _compiled:
        _compiled[id(schema)] = schema, validator(schema, FormatChecker())
    errors = _compiled[id(schema)][1].iter_errors(document)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]
