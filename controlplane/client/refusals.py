"""The errors that the clients raise if the service refuses a call or does not reply."""

from collections.abc import Mapping

from agent.presentation.plain_text import plain
from agent.wire.codec import decode
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError
from controlplane.client.errors import CommandError

MESSAGE_MAX = 300
FIELDS_MAX = 3
"""Maximum number of invalid fields that a message names."""
NOT_FOUND = 404
SERVER_ERROR = 500
_ADVICE = {
    401: "The API key is unknown or revoked: see `venue-control {list_command}`.",
    403: "The API key lacks the required grant or location: see `venue-control {list_command}`.",
    404: "If all calls fail like this, --base-url is not the address of the service.",
    429: "The service still refuses calls after the longest wait: try again later.",
    503: "The service is busy or restarting: try again in a minute.",
}


class RefusedError(CommandError):
    """An error reply of the service.

    Attributes:
        status: HTTP status of the reply.
        code: error code of the service, or "" if the reply has none.
        errors: messages by the name of the invalid field.
        trace_id: id of the call in the log of the service.
    """

    def __init__(self, message: str, hint: str, status: int, problem: Problem) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = problem.code or ""
        self.trace_id = problem.trace_id
        self.errors: Mapping[str, tuple[str, ...]] = problem.errors or {}


class InvalidError(RefusedError):
    """400, 413, 415 and other statuses below 500: the request is invalid."""


class UnauthenticatedError(RefusedError):
    """401: the credential is not valid."""


class ForbiddenError(RefusedError):
    """403: the caller is not permitted to make this call."""


class NotFoundError(RefusedError):
    """404: the object does not exist, or the caller has no access to it."""


class ConflictError(RefusedError):
    """409: the call conflicts with the current state of the object."""


class RateLimitedError(RefusedError):
    """429: too many calls."""


class FailedError(RefusedError):
    """500 and above: the service failed to process the call."""


class UnreachableError(CommandError):
    """No complete reply arrived."""


class UnexpectedReplyError(CommandError):
    """The reply does not fit the contract."""


_ERROR_CLASSES: Mapping[int, type[RefusedError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    NOT_FOUND: NotFoundError,
    409: ConflictError,
    429: RateLimitedError,
}


def refusal(status: int, body: bytes, list_command: str = "keys list") -> RefusedError:
    """Return the error for a refusal.

    ``list_command`` is the command of `venue-control` that the hint names. It lists the API keys,
    or the keys of the retail API.
    """
    try:
        problem = decode(body, Problem)
    except ValidationError:
        problem = Problem()
    text = problem.detail or problem.title or ""
    for name, messages in list((problem.errors or {}).items())[:FIELDS_MAX]:
        text += f"; {name}: {', '.join(messages)}"
    code = f" {problem.code}" if problem.code else ""
    message = f"the service answered {status}{code}" + (f": {text}" if text else "")
    advice = _ADVICE.get(status, "").format(list_command=list_command)
    if status == NOT_FOUND and problem.code:
        advice = ""  # the code comes from the service, so --base-url is right
    other_class = FailedError if status >= SERVER_ERROR else InvalidError
    error_class = _ERROR_CLASSES.get(status, other_class)
    return error_class(plain(message)[:MESSAGE_MAX], advice, status, problem)
