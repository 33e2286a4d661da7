import io

from rich.console import Console

from agent.presentation.application_rows import (
    absence_rows,
    interface_and_peripheral_groups,
    snapshot_groups,
    snapshot_limitation_lines,
)
from agent.presentation.headline import headline_of
from agent.presentation.page.html import report_page
from agent.presentation.terminal.report import report_view
from agent.wire.payloads.application import SnapshotField
from tests.fixtures.payloads import application_snapshot


def test_groups_have_a_fixed_order_with_unknown_groups_last() -> None:
    titles = [group.title for group in snapshot_groups(application_snapshot())]
    assert titles[:4] == ["Operating system", "Hardware", "Memory", "Processor"]
    assert titles[-2:] == ["Agent", "Till"]


def test_each_object_of_a_group_has_its_own_section() -> None:
    groups = {group.title: group for group in snapshot_groups(application_snapshot())}
    (root,) = groups["Disks"].sections
    assert root.title == "/"
    assert [(row.label, row.value) for row in root.rows] == [
        ("Size", "58.4 GiB"),
        ("Free", "488.6 MiB"),
        ("Used", "99.2 %"),
        ("Read only", "no"),
    ]


def test_an_object_with_one_fact_is_displayed_in_one_row() -> None:
    groups = {group.title: group for group in snapshot_groups(application_snapshot())}
    bar_queue, kitchen = groups["Print queues"].sections
    assert (bar_queue.rows[-1].label, bar_queue.rows[-1].value) == ("bar: jobs waiting", "0")
    assert kitchen.title == "kitchen"


def test_every_available_field_is_displayed_once() -> None:
    payload = application_snapshot()
    available = [field for field in payload.snapshot.fields if field.status == "available"]
    displayed = [
        row
        for group in snapshot_groups(payload)
        for section in group.sections
        for row in section.rows
    ]
    assert len(displayed) == len(available)


def test_a_mount_point_with_dots_keeps_them() -> None:
    payload = application_snapshot()
    field = SnapshotField(key="disk./mnt/v1.2.sizeBytes", source="x", status="available", value=1)
    snapshot = payload.snapshot.model_copy(update={"fields": (field,)})
    (group,) = snapshot_groups(payload.model_copy(update={"snapshot": snapshot}))
    assert group.sections[0].rows[0].label == "/mnt/v1.2: size"


def test_missing_facts_are_grouped_by_reason_with_failures_first() -> None:
    payload = application_snapshot()
    absent = SnapshotField(
        key="hardware.batteryCharging",
        source="sysfs",
        status="not-applicable",
        reason="this machine has no battery",
    )
    fields = (*payload.snapshot.fields, absent)
    snapshot = payload.snapshot.model_copy(update={"fields": fields})
    rows = absence_rows(payload.model_copy(update={"snapshot": snapshot}))
    assert rows[0].status == "failed"
    assert rows[0].facts == ("disk./mnt/share.sizeBytes",)
    assert rows[-1].facts == ("hardware: batteryFraction, batteryCharging",)
    assert rows[-1].count == 2
    assert "wlan0 interface.wifiSsid" in [fact for row in rows for fact in row.facts]


def test_interfaces_peripherals_and_the_browser_have_their_own_groups() -> None:
    payload = application_snapshot()
    interfaces, peripherals, browsers = interface_and_peripheral_groups(payload)
    assert [s.title for s in interfaces.sections] == ["eth0", "wlan0"]
    assert [s.title for s in peripherals.sections] == [
        "TM-T20III (usb-1-1)",
        "Card reader (bt-0)",
    ]
    (browser,) = browsers.sections
    assert ("Memory, about", "8 GiB") in [(row.label, row.value) for row in browser.rows]


def test_a_truncated_snapshot_has_a_limitation_line() -> None:
    payload = application_snapshot()
    snapshot = payload.snapshot.model_copy(update={"truncated": True})
    lines = snapshot_limitation_lines(payload.model_copy(update={"snapshot": snapshot}))
    assert lines[-1].startswith("The snapshot was cut")


def test_facts_that_do_not_apply_are_counted_in_singular_and_plural() -> None:
    snapshot = application_snapshot().snapshot
    for hidden_key, facts, short in (
        ("hardware.batteryFraction", "1 fact does not apply", "1 does not apply"),
        ("", "2 facts do not apply", "2 do not apply"),
    ):
        fields = tuple(field for field in snapshot.fields if field.key != hidden_key)
        payload = application_snapshot().model_copy(
            update={"snapshot": snapshot.model_copy(update={"fields": fields})}
        )
        terminal = io.StringIO()
        Console(file=terminal, width=100).print(report_view(payload))
        assert f"<summary>{facts} to this machine</summary>" in report_page(payload)
        assert f"\n{facts} to this machine; --json" in terminal.getvalue()
        (counts,) = (row.value for row in headline_of(payload).rows if row.label == "Facts")
        assert counts.endswith(f", {short}")
