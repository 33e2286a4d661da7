"""What a typed client raises: one class for each family of answers that are no success."""

from collections.abc import Mapping

from agent.presentation.plain_text import plain
from agent.wire.codec import decode
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError


class ClientError(Exception):
    """The service gave no usable answer; the text says why, for a person."""


class UnreachableError(ClientError):
    """There was no answer."""


class UnexpectedReplyError(ClientError):
    """The answer does not fit the contract."""


class RefusedError(ClientError):
    """The service answered with a status of 400 and above.

    ``code`` and ``trace_id`` are the problem's, where it has them; ``errors`` maps fields to what
    is wrong with them; ``retry_after_s`` is how long the service asks to wait.
    """

    def __init__(self, status: int, problem: Problem, retry_after_s: int | None = None) -> None:
        said = plain(problem.detail or problem.title or "")
        for name, messages in list((problem.errors or {}).items())[:3]:
            said += f"; {plain(name)}: {plain(', '.join(messages))}"
        code = f" {plain(problem.code)}" if problem.code else ""
        super().__init__(f"the service answered {status}{code}" + (f": {said}" if said else ""))
        self.status = status
        self.code = problem.code
        self.trace_id = problem.trace_id
        self.errors: Mapping[str, tuple[str, ...]] = problem.errors or {}
        self.retry_after_s = retry_after_s


class InvalidError(RefusedError):
    """400, 413, 415 and others: what was asked is wrong."""


class UnauthenticatedError(RefusedError):
    """401: the API key or token is not good."""


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


_BY_STATUS: Mapping[int, type[RefusedError]] = {
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitedError,
}


def refused(status: int, body: bytes, retry_after: str | None) -> RefusedError:
    """Return the error for an answer that is no success."""
    try:
        problem = decode(body, Problem)
    except ValidationError:
        problem = Problem()
    wait_s = (
        int(retry_after)
        if retry_after and retry_after.isascii() and retry_after.isdecimal()
        else None
    )
    kind = _BY_STATUS.get(status, FailedError if status >= 500 else InvalidError)
    return kind(status, problem, wait_s)
