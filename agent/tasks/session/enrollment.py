"""At start, calls the operation `current` to confirm the binding of this device.

A device without a binding is enrolled instead. If the service refuses, the device keeps its
identity key, and tries again with exponential backoff.
"""

import logging
from dataclasses import dataclass
from random import Random
from typing import Final

from agent import __version__
from agent.adapters.clock import Clock
from agent.adapters.identity import IdentityFile, SigningKey
from agent.adapters.machine import service_platform
from agent.adapters.service_client import ServiceClient
from agent.config.model import Config
from agent.errors import FinalError, Refused, ServiceError, ServiceUnavailable
from agent.rules import retry
from agent.rules.binding import BindingVerdict, compare_bindings, describe_long_identity
from agent.tasks.health_board import HealthBoard
from agent.tasks.session.device_session import DeviceSession
from agent.wire.device_operations import ChallengeRequest, EnrollmentRecord, EnrollRequest

log = logging.getLogger(__name__)

FORBIDDEN: Final = 403


@dataclass(slots=True, eq=False)
class Enrollment:
    """Enrolls this device, and confirms its binding."""

    session: DeviceSession
    config: Config
    identity: IdentityFile
    health: HealthBoard
    clock: Clock
    rng: Random
    current_of_others: int = 0
    """Number of replies of `current` about another device. They are normal if devices share an API
    key."""

    async def run(self) -> None:
        """Get a confirmed binding. After a revocation, get one again. Never returns."""
        if self.session.binding_state.binding is None:
            await self._enroll_until_bound()
        elif not await self._report_new_version():
            await self._confirm(needs_recheck=self.session.binding_state.is_revoked)
        while True:
            if self.session.binding_state.is_revoked:
                self.session.note_rechecked()
                await self._wait_while_revoked()
            await self.session.wait_for_recheck_request()
            await self._confirm(needs_recheck=True)

    async def _report_new_version(self) -> bool:
        """Enroll again if the service stores a different version of the agent for this device.

        The agent sends its version only when it enrolls, and operators read it in the service.
        Returns whether the device was enrolled again.
        """
        known_binding = self.session.binding_state.binding
        if known_binding is None or self.session.binding_state.is_revoked:
            return False
        if known_binding.app_version in (None, __version__):  # None: the service does not store it
            return False
        try:
            record = await self.enroll_once()
        except ServiceError as error:
            log.info("the service did not accept the new version: %s", explain(error))
            return False
        log.info("the service has accepted version %s", __version__)
        if record.binding_id != known_binding.binding_id:
            log.warning(
                "the service has created binding %s for this device",
                record.binding_id,
            )
        self._update_conditions()
        return True

    async def _confirm(self, *, needs_recheck: bool) -> None:
        """Call `current` and apply its reply.

        ``needs_recheck`` is True if the service has refused a call or revoked the binding.
        """
        binding = self.session.binding_state.binding
        if binding is None:
            return
        try:
            current = await self.session.current()
        except FinalError as error:
            await self._confirm_by_heartbeat(
                f"`current` fails: {error}", needs_recheck=needs_recheck
            )
            return
        verdict = compare_bindings(current, binding)
        log.debug("verdict on the binding: %s", verdict)
        if verdict is BindingVerdict.ADOPT and current is not None:
            log.warning(
                "the service has created binding %s for this device",
                current.binding_id,
            )
            self.session.binding_state.adopt(current, self.config.service.location_id)
        elif verdict is BindingVerdict.KEEP:
            self.session.binding_state.confirm()
        elif verdict is BindingVerdict.SHARED:
            self.current_of_others += 1
            why = "`current` returns another device of the same API key"
            await self._confirm_by_heartbeat(why, needs_recheck=needs_recheck)
            return
        else:
            self._note_revoked("the service has no binding of this device")
        self._update_conditions()

    async def _confirm_by_heartbeat(self, why: str, *, needs_recheck: bool) -> None:
        """Confirm the binding, although `current` returned nothing about this device.

        ``why`` is the reason why `current` does not show the binding's state. With
        ``needs_recheck``, a heartbeat is sent first. If the service refuses it, the binding is
        revoked (docs/adr/0005).
        """
        if needs_recheck:
            try:
                await self.session.heartbeat()
            except Refused as error:
                self._note_revoked(f"heartbeats are refused ({error}), and {why}")
                return
            except FinalError as error:
                log.warning("the service rejects heartbeats: %s", error)
        self.session.binding_state.confirm()
        self._update_conditions()

    def _update_conditions(self) -> None:
        """Update the conditions of a confirmed binding."""
        if not self.session.binding_state.is_bound or self.session.binding_state.binding is None:
            return
        self.health.clear({"revoked", "not-enrolled"})
        if too_long := describe_long_identity(self.session.binding_state.binding):
            self.health.set("identity-too-long", too_long)
        else:
            self.health.clear({"identity-too-long"})

    def _note_revoked(self, why: str) -> None:
        self.session.binding_state.revoke()
        self.health.set("revoked", why)

    async def _wait_while_revoked(self) -> None:
        """Check with exponential backoff whether the device is still revoked.

        With ``enrollment.on_revoked = "reenroll"``, the device enrolls again instead.
        """
        attempt = 0
        while self.session.binding_state.is_revoked:
            attempt += 1
            await self.clock.sleep(retry.REVOKED.delay_s(attempt, self.rng))
            if self.config.enrollment.on_revoked == "reenroll":
                await self._enroll_until_bound()
            else:
                await self._confirm(needs_recheck=True)

    async def _enroll_until_bound(self) -> None:
        attempt = 0
        while True:
            attempt += 1
            try:
                record = await self.enroll_once()
            except ServiceError as error:
                delay_s = retry.CREDENTIAL.delay_s(attempt, self.rng)
                log.info("enrollment try %d failed; next try in %.0f s", attempt, delay_s)
                self.health.set("not-enrolled", explain(error))
                await self.session.breaker.wait_for_another_key(delay_s)
                continue
            log.info("enrolled as %s, binding %s", record.instance_id, record.binding_id)
            self._update_conditions()
            return

    async def enroll_once(self) -> EnrollmentRecord:
        """Enroll with one challenge, and store the binding. Raises ServiceError, StateError."""
        record = await enroll_with_challenge(
            self.config,
            self.identity.load_or_create(),
            self.session.binding_state.record.legacy_install_id,
            self.session,
        )
        self.session.binding_state.adopt(record, self.config.service.location_id)
        return record


async def enroll_with_challenge(
    config: Config,
    key: SigningKey,
    legacy_install_id: str,
    service: DeviceSession | ServiceClient,
) -> EnrollmentRecord:
    """Request a challenge, send its signature, and return the enrollment. Raises ServiceError.

    A `DeviceSession` repeats each call until the service accepts or refuses it. A `ServiceClient`
    makes each call once.
    """
    request = ChallengeRequest(
        instance_id=key.instance_id,
        public_key=key.public_key,
        platform=service_platform(),
        location_id=config.service.location_id,
        legacy_install_id=legacy_install_id,
        app_version=__version__,
        capabilities=config.capabilities,
    )
    challenge = await service.challenge(request)
    encoding = config.enrollment
    signature = key.sign(challenge.nonce, encoding.nonce_encoding, encoding.signature_encoding)
    answer = EnrollRequest(challenge_id=challenge.challenge_id, signature=signature)
    record = await service.enroll(answer)
    if record.instance_id != key.instance_id:
        raise ServiceUnavailable("bad-reply", "the service enrolled a different device")
    return record


def explain(error: ServiceError) -> str:
    """Return one line with the reason why the service did not enroll this device."""
    if not isinstance(error, Refused) or error.status != FORBIDDEN:
        return str(error)
    if error.is_read_only_key:
        return f"this key has no write grant: {error}"
    if error.code is not None:
        return str(error)
    return f"this key has no write grant, or no access to this location: {error}"
