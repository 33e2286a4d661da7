"""Describes how the previous run of the agent and of the machine ended."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from agent.wire.payloads.history import Event


def describe_start(
    values: Mapping[str, str], boot_id: str | None, now: datetime
) -> Iterator[Event]:
    """Yield the event of this start. There is none for the first start.

    Args:
        values: what the previous run stored: ``boot-id``, and ``stopped``, which is "cleanly" if
            the agent stopped in an orderly way.
        boot_id: identifies the present run of the operating system; None if unknown.
    """
    if not values:
        return
    is_clean = values.get("stopped") == "cleanly"
    previous_boot_id = values.get("boot-id") or None
    if boot_id is not None and previous_boot_id is not None and boot_id != previous_boot_id:
        yield Event("machine-started" if is_clean else "power-lost", now)
    else:
        yield Event("agent-started" if is_clean else "agent-killed", now)
