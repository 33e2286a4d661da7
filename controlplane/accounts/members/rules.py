"""Who may manage members and read the audit log."""

from http import HTTPStatus

from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal


def owns(caller: Caller) -> bool:
    """Tell whether it is an owner of the whole organization, signed in.

    An owner of some locations only could otherwise make members of all of them.
    """
    return caller.kind == "session" and caller.role == "owner" and not caller.locations


def require_owner(context: RequestContext) -> None:
    if not owns(context.caller):
        raise Refusal(
            HTTPStatus.FORBIDDEN, "owner_needed", "only owners of every location may do this"
        )
