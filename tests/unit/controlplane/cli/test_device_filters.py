"""Tests of the options of `venue-control devices` that filter devices."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from agent.wire.operator_operations import Device
from controlplane.cli.devices.filters import Filters
from controlplane.cli.main import build_parser
from tests.unit.controlplane.cli.test_tables import DEVICE

KITCHEN = DEVICE.model_copy(
    update={
        "instance_id": UUID(int=7),
        "legacy_install_id": "Kitchen",
        "location_id": "loc-0002",
        "location_name": None,
        "platform": "windows",
        "app_version": "0.2.0",
        "online": False,
    }
)
REVOKED = DEVICE.model_copy(
    update={
        "instance_id": UUID(int=8),
        "legacy_install_id": "gone",
        "app_version": None,
        "online": False,
        "revoked_at": datetime.now(UTC),
    }
)
DEVICES_BY_NAME: dict[str, Device] = {"bar": DEVICE, "kitchen": KITCHEN, "gone": REVOKED}


# A tab in ``words`` stands for a space within an argument.
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("", "bar kitchen gone"),
        ("--online", "bar"),
        ("--offline", "kitchen"),
        ("--revoked", "gone"),
        ("--location loc-0002", "kitchen"),
        ("--location loc-0002 --location LOC-0001", "bar kitchen gone"),
        ("--location Main\tstreet", "bar gone"),
        ("--location loc", ""),
        ("--platform windows", "kitchen"),
        ("--app-version 0.1.0", "bar"),
        ("--app-version 0.1", ""),
        ("--app-version-not 0.2.0", "bar gone"),
        ("--app-version-not 0.2.0 --app-version-not 0.1.0", "gone"),
        ("--search KITCH", "kitchen"),
        ("--search main\t0.1", "bar"),
        ("--search 0f7e4a52", "bar"),
        ("--search 7a10", ""),
        ("--online --platform windows", ""),
    ],
)
def test_filters_select_devices(words: str, names: str) -> None:
    arguments = [word.replace("\t", " ") for word in words.split(" ") if word]
    filters = Filters(build_parser().parse_args(["devices", *arguments]))
    selected = filters.apply(DEVICES_BY_NAME.values())
    assert selected == [DEVICES_BY_NAME[name] for name in names.split()]
    assert filters.is_empty is (not words)
