"""Permission to manage members and to read the audit log."""

from http import HTTPStatus

from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal


def owns(caller: Caller) -> bool:
    """Return whether the caller is a signed-in owner of the whole organization.

    An owner of only some locations is not permitted to manage members, because such an owner
    could give new members access to all locations.
    """
    return caller.kind == "session" and caller.role == "owner" and not caller.locations


def require_owner(context: RequestContext) -> None:
    if not owns(context.caller):
        raise Refusal(
            HTTPStatus.FORBIDDEN, "owner_required", "requires an owner with access to all locations"
        )
