"""Permission to manage members and to read the audit log."""

from controlplane.operation.context import RequestContext
from controlplane.operation.errors import forbidden


def require_owner(context: RequestContext) -> None:
    """Raise a refusal unless the caller is a signed-in owner of the whole organization.

    An owner of only some locations is not permitted to manage members, because such an owner
    could give new members access to all locations.
    """
    caller = context.caller
    if caller.kind != "session" or caller.role != "owner" or caller.locations:
        raise forbidden("owner_required", "requires an owner with access to all locations")
