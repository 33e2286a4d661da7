"""Every error of the agent, classed by what to do about it.

AgentError                  shown to people as one or two plain lines
├── ConfigError             the configuration is wrong: fix the file, exit 2
│   ├── ConfigMissing       there is none: make one, exit 2
│   └── ConfigNotVisible    this user may not read what it consists of (also a NotVisible)
├── NotVisible              closed to this user: ask as root, exit 3
├── StateError              the state directory cannot be used: fix the machine, exit 1
├── CollectorError          the child broke; what it told until then still counts
└── ServiceError            the service did not do what was asked
    ├── ServiceUnavailable  no usable answer: try again, later and later
    │   └── Throttled       the service named the wait
    ├── CredentialRefused   401: read the key again, try slowly, keep the identity
    ├── Refused             403, 404, 409, 410: an answer about this thing, ask `current`
    ├── BodyRejected        400, 422 and other 4xx: this body will never be taken
    └── BodyTooLarge        413: send a smaller one
"""

from typing import Literal

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


class AgentError(Exception):
    """Anything the agent says instead of a traceback. What it says holds no secret."""

    def __init__(self, message: str = "") -> None:
        super().__init__(redact(message))


class ConfigError(AgentError):
    """One line for each problem found, each with the file and line where it stands."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = tuple(redact(problem) for problem in problems)
        super().__init__("\n".join(self.problems))


class ConfigMissing(ConfigError):
    """There is no configuration in any of the places where one is looked for."""


class NotVisible(AgentError):
    """What was asked about is closed to this user, and nothing may be said of it.

    ``advice`` is what to do where it is not just the same command as root.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class ConfigNotVisible(ConfigError, NotVisible):
    """The configuration, or the key that it names, is there and closed to this user."""


class StateError(AgentError):
    """The state directory is missing, read-only, full, or used by another agent."""


class CollectorError(AgentError):
    """The collector's process ended without a result."""


class ServiceError(AgentError):
    """Base of everything a call to the service can end in."""


class ServiceUnavailable(ServiceError):
    """The service gave no usable answer; ``cause`` says which kind of trouble it looks like."""

    def __init__(self, cause: UnavailableCause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


class Throttled(ServiceUnavailable):
    """429 or 503; ``retry_after_s`` is the service's own wish, where it gave one."""

    def __init__(self, detail: str, retry_after_s: float | None) -> None:
        super().__init__("throttled", detail)
        self.retry_after_s = retry_after_s


class CredentialRefused(ServiceError):
    """The API key is missing, unknown, expired or has not the grant that is needed."""


class Refused(ServiceError):
    """The service knows what was asked and says no. ``code`` is its own word, if it gave one."""

    def __init__(self, status: int, code: str | None, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


class BodyRejected(ServiceError):
    """The body breaks the service's rules; sending it again cannot help."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class BodyTooLarge(ServiceError):
    """The body is larger than the service takes."""
