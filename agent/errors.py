"""Every error of the agent, classified by the action that it requires.

AgentError                  shown to users as plain lines, without a traceback
├── ConfigError             the configuration is wrong: fix the file, exit 2
│   ├── ConfigMissing       there is no configuration: create one, exit 2
│   └── ConfigNotVisible    this user cannot read the file or the API key: exit 3 (also NotVisible)
├── NotVisible              this user has no access: run as root, exit 3
├── StateError              the state directory cannot be used: fix the machine, exit 1
├── CollectorError          the collector sent no facts: send a failed report
└── ServiceError            a call to the service failed
    ├── TemporaryError      the same call can succeed later
    │   ├── ServiceUnavailable  no usable reply: retry with exponential backoff
    │   │   └── Throttled       429, or 503 with Retry-After: retry after the requested wait
    │   └── CredentialRefused   401: read the key again, retry slowly, keep the identity
    │       └── ApiKeyUnreadable  no call was sent: treat as 401, though there is no reply
    └── FinalError          the same call would fail again
        ├── Refused         403, 404, 409, 410: call the operation `current` to check the binding
        ├── BodyRejected    400, 422 and other 4xx: do not send this body again
        └── BodyTooLarge    413: send a smaller body
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from agent.redaction.known import redact

UnavailableCause = Literal[
    "name-resolution",
    "connection-refused",
    "connection-lost",
    "timeout",
    "tls",
    "proxy",
    "redirect",
    "captive-portal",
    "server-error",
    "bad-reply",
    "throttled",
]

WITHOUT_CONTACT: Final = frozenset(
    {"name-resolution", "connection-refused", "connection-lost", "timeout", "tls"}
)
"""Causes of ServiceUnavailable without any reply. All other causes mean that there was a reply."""


class AgentError(Exception):
    """Base of errors that are shown without a traceback. The message contains no secret."""

    def __init__(self, message: str = "") -> None:
        super().__init__(redact(message))


class ConfigError(AgentError):
    """The configuration is wrong. ``problems`` has one text for each problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = tuple(redact(problem) for problem in problems)
        super().__init__("\n".join(self.problems))


class ConfigMissing(ConfigError):
    """There is no configuration file at any of the possible paths."""


class NotVisible(AgentError):
    """This user lacks the rights to read a file, or to change the agent's system service.

    ``advice`` describes what to do. If it is empty, the user must run the command as root.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class ConfigNotVisible(ConfigError, NotVisible):
    """The configuration or the API key file exists, but this user cannot read it."""


class StateError(AgentError):
    """The state directory cannot be used: it is, for example, full, or locked by another agent."""


@contextmanager
def as_state_error(problem: str) -> Iterator[None]:
    """Convert an OSError from the `with` block into a StateError.

    Its message is ``problem``, followed by the message of the operating system.
    """
    try:
        yield
    except OSError as error:
        raise StateError(f"{problem}: {error.strerror}") from None


class CollectorError(AgentError):
    """The collector cannot be started, sends an invalid event, or sends no facts."""


class ServiceError(AgentError):
    """Base of every failure of a call to the service."""


class TemporaryError(ServiceError):
    """Base of the failures after which the same call can succeed later."""


class ServiceUnavailable(TemporaryError):
    """The service gave no usable reply. ``cause`` is the likely reason."""

    def __init__(self, cause: UnavailableCause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


class Throttled(ServiceUnavailable):
    """429, or 503 with Retry-After. ``retry_after_s`` is the requested wait in seconds, if any."""

    def __init__(self, detail: str, retry_after_s: float | None) -> None:
        super().__init__("throttled", detail)
        self.retry_after_s = retry_after_s


class CredentialRefused(TemporaryError):
    """The service does not accept the API key (401), or the key cannot be read."""


class ApiKeyUnreadable(CredentialRefused):
    """The API key cannot be read, so no call was sent."""


_READ_ONLY_CODES: Final = frozenset({"read_only_key", "read_only", "write_grant_required"})
"""Error codes of services for a key without a write grant."""


class FinalError(ServiceError):
    """Base of the failures after which the same call would fail again."""


class Refused(FinalError):
    """The service refuses the call. ``code`` is the error code of its reply, or None."""

    def __init__(self, status: int, code: str | None, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code

    @property
    def is_read_only_key(self) -> bool:
        """Whether the error code means that the key has no write grant."""
        return self.code in _READ_ONLY_CODES


class BodyRejected(FinalError):
    """The service will never accept this body, so it must not be sent again."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class BodyTooLarge(FinalError):
    """The body is larger than the service accepts."""
