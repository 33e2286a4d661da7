"""Compares the stored binding with the reply of the operation `current`.

The reply is an enrollment record of the API key. Devices can share a key, so the record can belong
to another device (docs/adr/0005).
"""

from enum import StrEnum

from agent.wire import limits
from agent.wire.device_operations import EnrollmentRecord
from agent.wire.text import utf16_length


class BindingVerdict(StrEnum):
    """The result of `compare_bindings`."""

    KEEP = "keep"  # the binding is unchanged
    ADOPT = "adopt"  # the service has created a new binding
    GONE = "gone"  # the service has no binding for this API key
    SHARED = "shared"  # another device has the same API key, and the reply is about that device


def compare_bindings(current: EnrollmentRecord | None, stored: EnrollmentRecord) -> BindingVerdict:
    """Compare the service's record with the stored binding."""
    if current is None:
        return BindingVerdict.GONE
    if current.instance_id != stored.instance_id:
        return BindingVerdict.SHARED
    is_kept = current.binding_id == stored.binding_id
    return BindingVerdict.KEEP if is_kept else BindingVerdict.ADOPT


def describe_long_identity(record: EnrollmentRecord) -> str | None:
    """Describe the part of a record that is too long for a report; None if all fits."""
    length = utf16_length(record.organization_id)
    if length <= limits.PAYLOAD_STRING_MAX:
        return None
    return f"organizationId has {length} characters of at most {limits.PAYLOAD_STRING_MAX}"
