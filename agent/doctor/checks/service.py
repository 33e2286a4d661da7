"""Checks of the service's replies: the service itself, key, grant, location, binding.

The checks call the operation `current`, which changes nothing. If no running agent shows that the
key has a write grant, the checks also request a challenge, which they do not answer.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from agent import __version__
from agent.adapters.clock import SystemClock
from agent.adapters.identity import SigningKey
from agent.adapters.machine import service_platform
from agent.adapters.service_client import ServiceClient
from agent.config.credential import ApiKeySource
from agent.doctor.check import Outcome, fail, ok, skipped, warn
from agent.doctor.context import CallResult, Context
from agent.errors import (
    WITHOUT_CONTACT,
    BodyRejected,
    CredentialRefused,
    Refused,
    ServiceError,
    ServiceUnavailable,
)
from agent.presentation.humanize import age_s
from agent.rules.binding import BindingVerdict, compare_bindings
from agent.rules.health import CONDITIONS
from agent.wire.device_operations import ChallengeRequest, EnrollmentRecord

CALL_TIMEOUT_S: Final = 3.5
RECENT_HEARTBEAT_S: Final = 300.0
"""Maximum age of an accepted heartbeat that shows that the key has a write grant."""
LOCATION: Final = "location"
"""An error code with this word is about the location."""
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404

ServiceCall = Callable[[ServiceClient], Awaitable[EnrollmentRecord | None]]

_KEY_FIX: Final = (
    "write a valid key with a write grant to the key file; the agent reads it automatically"
)
_LOCATION_FIX: Final = "correct service.location_id, or use a key for this location"
_REFUSAL_FIX: Final = "ask the operator of the service what the message means"


def captive_portal(context: Context) -> Outcome:
    result = _call_service(context, lambda client: client.current())
    error, outcome = result.error, ok("no web page intercepts calls")
    if isinstance(error, ServiceUnavailable) and error.cause in {"captive-portal", "redirect"}:
        outcome = fail(str(error), CONDITIONS[error.cause].fix)
    elif isinstance(error, ServiceUnavailable) and error.cause in WITHOUT_CONTACT:
        outcome = skipped(f"the service gave no answer: {error}")
    return outcome.with_facts(current_result=result)


def service(context: Context) -> Outcome:
    error = context.current_result.error
    if isinstance(error, ServiceUnavailable):
        condition = CONDITIONS[error.cause]
        make_outcome = fail if condition.severity == "error" else warn
        return make_outcome(f"{condition.title}: {error}", condition.fix)
    if isinstance(error, BodyRejected):
        return fail(f"another server answers: {error}", CONDITIONS["bad-reply"].fix)
    return ok("the service answers")


def credential(context: Context) -> Outcome:
    error = context.current_result.error
    if isinstance(error, CredentialRefused):
        return fail(str(error), _KEY_FIX)
    if isinstance(error, Refused):
        return fail(f"the service refuses the key: {error}", _KEY_FIX)
    if error is not None:
        return skipped(f"the service gave no usable answer: {error}")
    return ok("the service accepts the key")


def write_grant(context: Context) -> Outcome:
    """Check that the key has a write grant.

    If the service has accepted a recent heartbeat of a running agent, the key has a write grant.
    Otherwise, the check requests a challenge.
    """
    status = context.daemon
    if status is not None and status.binding and not status.is_revoked:
        heartbeat_age_s = age_s(status.last_heartbeat_at or "")
        if heartbeat_age_s is not None and heartbeat_age_s < RECENT_HEARTBEAT_S:
            return ok("the service accepts the agent's heartbeats")
    result = _call_service(context, _challenge(context))
    return _grant_outcome(result.error).with_facts(challenge_result=result)


def _grant_outcome(error: ServiceError | None) -> Outcome:
    if isinstance(error, ServiceUnavailable | BodyRejected):
        return skipped(f"the service gave no usable answer: {error}")
    if not isinstance(error, Refused) or error.status != FORBIDDEN or _is_about_location(error):
        return ok(
            "the service would enroll this device"
            if error is None
            else "the service did not report a missing write grant"
        )
    if error.is_read_only_key:
        return fail(f"this key has no write grant: {error}", "create a key with a write grant")
    return fail(
        f"this key has no write grant, or no access to this location: {error}",
        "create a key with a write grant for this location",
    )


def location(context: Context) -> Outcome:
    configured_location = context.service.location_id
    error = context.challenge_result.error
    if isinstance(error, Refused):
        is_unknown_location = error.status == NOT_FOUND and error.code is None
        if _is_about_location(error) or is_unknown_location:
            return fail(
                f"the service refuses the location {configured_location!r}: {error}", _LOCATION_FIX
            )
        if error.status != FORBIDDEN:  # `write_grant` reports replies with 403
            return fail(f"the service refuses to enroll this device: {error}", _REFUSAL_FIX)
    binding = context.record.binding if context.record else None
    if binding is not None and binding.location_id != configured_location:
        return warn(
            f"enrolled at {binding.location_id!r}, but {configured_location!r} is configured",
            "restart the agent: it enrolls at the configured location",
        )
    return ok(configured_location)


def binding(context: Context) -> Outcome:
    """Check that the binding of this device still exists at the service."""
    record, result = context.record, context.current_result
    if result.error is not None:
        return skipped(f"the service gave no usable answer: {result.error}")
    if record is None or record.binding is None:
        return _not_enrolled(result.current)
    binding_id = record.binding.record.binding_id
    verdict = compare_bindings(result.current, record.binding.record)
    if verdict is BindingVerdict.KEEP:
        return ok(f"{binding_id}")
    if verdict is BindingVerdict.ADOPT:
        return warn(
            "the service has a new binding for this device", "restart the agent to adopt it"
        )
    if verdict is BindingVerdict.SHARED:
        return ok(f"{binding_id}; the API key serves other devices as well")
    return fail("the service has revoked this device", CONDITIONS["revoked"].fix)


def _not_enrolled(current: EnrollmentRecord | None) -> Outcome:
    more = "" if current is None else " (the API key belongs to another device)"
    return fail(
        f"this device is not enrolled{more}",
        "`venue-agent enroll` shows why; a running agent keeps trying",
        explained_by=("daemon", "write-grant", "location", "state-directory", "disk-space"),
    )


def _challenge(context: Context) -> ServiceCall:
    async def request_challenge(client: ServiceClient) -> None:
        await client.challenge(
            ChallengeRequest(
                instance_id=uuid.uuid4(),
                public_key=_throwaway_key(),
                platform=service_platform(),
                location_id=context.service.location_id,
                legacy_install_id="doctor",
                app_version=__version__,
                capabilities=(),
            )
        )

    return request_challenge


def _throwaway_key() -> str:
    """Return the public part of a key that is discarded at once."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.generate()).public_key


def _call_service(context: Context, service_call: ServiceCall) -> CallResult:
    settings = context.service.model_copy(update={"request_timeout_seconds": CALL_TIMEOUT_S})

    async def call_and_close() -> EnrollmentRecord | None:
        client = ServiceClient(settings, ApiKeySource(None, context.api_key), SystemClock())
        try:
            return await service_call(client)
        finally:
            await client.close()

    try:
        return CallResult(current=asyncio.run(call_and_close()))
    except ServiceError as error:
        return CallResult(error=error)


def _is_about_location(error: Refused) -> bool:
    return LOCATION in (error.code or "")
