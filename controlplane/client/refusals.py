"""What the service refused, or that it was not there, in words for a person."""

from agent.presentation.plain_text import plain
from agent.wire.codec import decode
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError
from controlplane.cli.errors import CommandError

DETAIL_MAX = 300
NOT_FOUND = 404
_ADVICE = {
    401: "The API key is unknown or revoked: see `venue-control keys list`.",
    403: "The API key lacks the grant or the location for this: see `venue-control keys list`.",
    404: "If all is refused like this, --base-url is not the service's own address.",
    429: "The service asks to slow down, and did so for as long as we wait.",
    503: "The service is busy or about to restart: try again in a minute.",
}


class RefusedError(CommandError):
    """The service answered with an error: ``status`` is HTTP's, ``code`` its own or ""."""

    def __init__(self, message: str, hint: str, status: int, code: str) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code


class UnreachableError(CommandError):
    """No whole reply came."""


def refusal(status: int, body: bytes) -> RefusedError:
    """Return what the service's refusal says, for a person."""
    try:
        problem = decode(body, Problem)
    except ValidationError:
        problem = Problem()
    said = problem.detail or problem.title or ""
    for name, messages in list((problem.errors or {}).items())[:3]:
        said += f"; {name}: {', '.join(messages)}"
    code = f" {problem.code}" if problem.code else ""
    message = f"the service answered {status}{code}" + (f": {said}" if said else "")
    advice = "" if problem.code and status == NOT_FOUND else _ADVICE.get(status, "")
    return RefusedError(plain(message)[:DETAIL_MAX], advice, status, problem.code or "")
