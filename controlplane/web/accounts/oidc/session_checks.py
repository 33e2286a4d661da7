"""Checks open sessions with their identity providers, in the background.

A user who has left a group at the provider loses the membership that the group gave, with its
sessions and keys. If the provider refuses the user, the session ends.
"""

import asyncio
import logging
from typing import Final

from controlplane.accounts.oidc import session_checks
from controlplane.accounts.oidc.errors import ProviderRefusedError, ProviderUnavailableError
from controlplane.accounts.oidc.session_checks import DueCheck
from controlplane.web.core import Core

log = logging.getLogger("controlplane.web.accounts.oidc.session_checks")
CHECK_INTERVAL_S: Final = 10.0
CONCURRENT_MAX: Final = 8


async def check_sessions(core: Core) -> None:
    """Check every due session once.

    If a provider does not answer, its other due sessions are not checked now, because each check
    would also wait until its call times out.
    """
    unavailable: set[str] = set()
    while checks := await core.write(
        lambda session: session_checks.reserve_due(session, core.clock())
    ):
        turns = asyncio.Semaphore(CONCURRENT_MAX)
        async with asyncio.TaskGroup() as tasks:
            for each in checks:
                tasks.create_task(_check(core, each, turns, unavailable))


async def _check(
    core: Core, check: DueCheck, turns: asyncio.Semaphore, unavailable: set[str]
) -> None:
    async with turns:
        try:
            if check.provider in unavailable:
                raise ProviderUnavailableError("the provider did not answer before")
            await _check_with_provider(core, check)
        except ProviderUnavailableError as error:
            if check.provider not in unavailable:
                log.warning("%s did not confirm a session: %s", check.provider, error)
            unavailable.add(check.provider)
            await core.write(
                lambda session: session_checks.retry_later(session, check, core.clock())
            )
        except ProviderRefusedError as error:
            reason = str(error)
            await core.write(
                lambda session: session_checks.refuse(session, check, reason, core.clock())
            )


async def _check_with_provider(core: Core, check: DueCheck) -> None:
    """Let the provider confirm the user of a session. Store the answer. Raises ProviderError."""
    client = core.provider_clients.get(check.provider)
    if client is None:
        raise ProviderRefusedError("the identity provider is no longer configured")
    answer = await client.revalidate(
        check.access_token, check.refresh_token, check.subject, core.clock()
    )
    provider, tokens = client.provider, (answer.access_token, answer.refresh_token)
    await core.write(
        lambda session: session_checks.confirm(
            session, check, provider, answer.claims, tokens=tokens, now=core.clock()
        )
    )
