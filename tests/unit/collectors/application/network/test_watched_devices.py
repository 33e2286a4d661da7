"""The snapshot's fields of watched devices."""

from collections.abc import Sequence

import pytest

from collectors.application.deadline import Deadline
from collectors.application.readers.network import watched_devices
from collectors.application.readers.network.watched_devices import (
    known_answers,
    read_answers,
    read_watched_devices,
)
from collectors.contract import ApplicationJob, WatchedDevice
from collectors.shared.watched_devices import Answers, Expectation
from tests.unit.collectors.application.fixtures import values
from tests.unit.collectors.watched_venues import LanDevice, SimulatedKernel

EXPECTED_ADDRESS, OTHER_ADDRESS = "10.0.0.4", "10.0.0.7"
MAC, OTHER_MAC = "00:11:22:00:00:01", "00:11:22:00:00:02"
BAR = WatchedDevice("Bar No. 1", "payment-terminal", EXPECTED_ADDRESS, MAC)
JOB = ApplicationJob(devices=(BAR,))
DEADLINE = Deadline.after(3600)


def read_fields(answers: Answers) -> dict[str, object]:
    """Return the values of the fields about ``BAR``."""

    def read(_: Sequence[Expectation], __: ApplicationJob, ___: Deadline) -> Answers:
        return answers

    return values(read_watched_devices(DEADLINE, JOB, answers=read).fields)


def test_a_moved_device_has_its_new_and_its_old_address() -> None:
    assert read_fields(Answers({OTHER_ADDRESS: MAC, EXPECTED_ADDRESS: OTHER_MAC})) == {
        "device.watched": ("Bar No. 1",),
        "device.Bar No. 1.kind": "payment-terminal",
        "device.Bar No. 1.present": True,
        "device.Bar No. 1.address": OTHER_ADDRESS,
        "device.Bar No. 1.movedFrom": EXPECTED_ADDRESS,
        "device.Bar No. 1.otherMac": OTHER_MAC,
    }


def test_an_absent_device_has_the_address_at_which_it_is_expected() -> None:
    fields = read_fields(Answers({}, {EXPECTED_ADDRESS}))
    assert fields["device.Bar No. 1.present"] is False
    assert fields["device.Bar No. 1.address"] == EXPECTED_ADDRESS
    assert "device.Bar No. 1.movedFrom" not in fields


def test_a_device_that_could_not_be_checked_has_only_its_kind() -> None:
    fields = read_fields(Answers({}, is_whole=False))
    assert fields == {
        "device.watched": ("Bar No. 1",),
        "device.Bar No. 1.kind": "payment-terminal",
    }


def test_nothing_is_read_without_watched_devices() -> None:
    assert values(read_watched_devices(DEADLINE, ApplicationJob()).fields) == {"device.watched": ()}


def test_known_answers_are_the_confirmed_neighbours_and_nothing_is_sent() -> None:
    """The known answers are used if ``network.device_only`` is set."""
    kernel = SimulatedKernel(
        {EXPECTED_ADDRESS: LanDevice(MAC), OTHER_ADDRESS: LanDevice(OTHER_MAC)},
        {OTHER_ADDRESS: OTHER_MAC},
    )
    kernel.prime(EXPECTED_ADDRESS)
    kernel.wait()
    kernel.sent.clear()
    answers = known_answers(kernel)
    assert answers.macs == {EXPECTED_ADDRESS: MAC}
    assert kernel.sent == []


def test_answers_state_why_the_interfaces_could_not_be_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deny() -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(watched_devices, "read_local_network", deny)
    answers = read_answers((Expectation(BAR),), JOB, DEADLINE)
    assert (answers.macs, answers.reason, answers.is_whole) == ({}, "Permission denied", False)
