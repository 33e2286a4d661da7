"""What the service refused, or that it was not there, in words for a person."""

from collections.abc import Mapping

from agent.presentation.plain_text import plain
from agent.wire.codec import decode
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError
from controlplane.client.errors import CommandError

DETAIL_MAX = 300
NOT_FOUND = 404
SERVER_ERROR = 500
_ADVICE = {
    401: "The API key is unknown or revoked: see `venue-control {listed_by}`.",
    403: "The API key lacks the grant or the location for this: see `venue-control {listed_by}`.",
    404: "If all is refused like this, --base-url is not the service's own address.",
    429: "The service asks to slow down, and did so for as long as we wait.",
    503: "The service is busy or about to restart: try again in a minute.",
}


class RefusedError(CommandError):
    """The service answered with an error: ``status`` is HTTP's, ``code`` its own or "".

    ``errors`` maps fields to what is wrong with them; ``trace_id`` names the call in its log.
    """

    def __init__(self, message: str, hint: str, status: int, problem: Problem) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = problem.code or ""
        self.trace_id = problem.trace_id
        self.errors: Mapping[str, tuple[str, ...]] = problem.errors or {}


class InvalidError(RefusedError):
    """400, 413, 415 and others: what was asked is wrong."""


class UnauthenticatedError(RefusedError):
    """401: the credential is not good."""


class ForbiddenError(RefusedError):
    """403: the caller may not do this."""


class NotFoundError(RefusedError):
    """404: there is no such thing, or it is not the caller's."""


class ConflictError(RefusedError):
    """409: it does not go with what is there."""


class RateLimitedError(RefusedError):
    """429: asked too often."""


class FailedError(RefusedError):
    """500 and above: the service cannot answer now."""


class UnreachableError(CommandError):
    """No whole reply came."""


class UnexpectedReplyError(CommandError):
    """The reply does not fit the contract."""


_FAMILIES: Mapping[int, type[RefusedError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    NOT_FOUND: NotFoundError,
    409: ConflictError,
    429: RateLimitedError,
}


def refusal(status: int, body: bytes, listed_by: str = "keys list") -> RefusedError:
    """Return what the service's refusal says, for a person; ``listed_by`` is the verb of keys."""
    try:
        problem = decode(body, Problem)
    except ValidationError:
        problem = Problem()
    said = problem.detail or problem.title or ""
    for name, messages in list((problem.errors or {}).items())[:3]:
        said += f"; {name}: {', '.join(messages)}"
    code = f" {problem.code}" if problem.code else ""
    message = f"the service answered {status}{code}" + (f": {said}" if said else "")
    advice = (
        ""
        if problem.code and status == NOT_FOUND
        else _ADVICE.get(status, "").format(listed_by=listed_by)
    )
    kind = _FAMILIES.get(status, FailedError if status >= SERVER_ERROR else InvalidError)
    return kind(plain(message)[:DETAIL_MAX], advice, status, problem)
