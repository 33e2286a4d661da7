"""`venue-agent enroll`: enrolls now, and prints the enrollment."""

import argparse
import asyncio
from typing import Final

from agent.adapters.accounts.privileges import step_down
from agent.adapters.clock import SystemClock
from agent.adapters.identity import IdentityFile
from agent.adapters.service_client import ServiceClient
from agent.adapters.service_route import service_route
from agent.adapters.storage.device_record import DeviceRecordFile
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.visibility import require_visible
from agent.cli.terminal.options import add_config_and_json_options
from agent.cli.terminal.screen import Screen, print_json
from agent.config.credential import ApiKeySource, key_source
from agent.config.file import load
from agent.config.model import Config, Service
from agent.device_setup import load_or_create_device
from agent.errors import CredentialRefused, Refused, ServiceError, ServiceUnavailable, StateError
from agent.rules.health import CONDITIONS
from agent.tasks.session.binding_state import BindingState
from agent.tasks.session.enrollment import enroll_with_challenge, explain
from agent.wire.codec import to_plain
from agent.wire.device_operations import EnrollmentRecord

_CAUSES_WITH_TITLE: Final = (
    "name-resolution", "connection-refused", "connection-lost", "timeout", "tls", "proxy",
    "bad-reply",
)  # fmt: skip
"""Causes of ServiceUnavailable. The title of the condition with the same code is printed before the
message, which is unclear alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_and_json_options(parser)
    parser.add_argument(
        "--force", action="store_true", help="enroll again, even if there is a binding"
    )


def run(options: argparse.Namespace) -> int:
    """Return 0 if the device has a binding.

    Errors become the exit codes of `agent.cli.main`.
    """
    loaded = load(Config, options.config)
    config = loaded.config
    # The key is read before `step_down`: the agent's user may not be able to read it.
    source = key_source(config.service.api_key_file, loaded.path)
    api_key = ApiKeySource(None, source.read_as_configured())
    key_place = source.describe()
    state = StateDirectory(loaded.state_dir)
    require_visible(state.path)
    step_down(state.path)
    state.prepare()
    _require_no_daemon(state)
    with state.lock():
        try:
            enrollment, is_new = asyncio.run(_bind(config, api_key, state, force=options.force))
        except ServiceError as error:
            proxy = _proxy_of(config.service)
            through_proxy = f" through the proxy {proxy}" if proxy else ""
            service = f"{config.service.base_url}{through_proxy}"
            fix = _fix(error, key_place, has_proxy=bool(proxy))
            raise ServiceError(f"not enrolled at {service}: {_describe(error)}\n{fix}") from None
    if options.json:
        print_json(to_plain(enrollment))
    else:
        _show(Screen(), enrollment, is_new=is_new)
    return 0


def _proxy_of(service: Service) -> str:
    """Return the proxy's address and the setting that names it; "" if no proxy is used."""
    route = service_route(service)
    return f"{route.proxy} of {route.why}" if route.proxy else ""


def _describe(error: ServiceError) -> str:
    if isinstance(error, ServiceUnavailable) and error.cause in _CAUSES_WITH_TITLE:
        return f"{CONDITIONS[error.cause].title}: {error}"
    return explain(error)


def _fix(error: ServiceError, key_place: str, *, has_proxy: bool) -> str:
    """Return what to do after a failed enrollment. ``key_place`` names where the API key is."""
    if isinstance(error, ServiceUnavailable):
        if error.cause in {"server-error", "throttled"}:
            return "try again later"
        is_proxy_error = has_proxy and error.cause in {"connection-refused", "name-resolution"}
        return CONDITIONS["proxy" if is_proxy_error else error.cause].fix
    # `explain` changes the message if the key may lack a write grant or access to the location.
    if isinstance(error, CredentialRefused) or explain(error) != str(error):
        return f"put a valid key with a write grant for this location into {key_place}"
    if isinstance(error, Refused) and error.code is not None:
        return "correct service.location_id, or use a key for this location"
    return (
        "check service.base_url and service.location_id; update the agent if the service is newer"
    )


def _require_no_daemon(state: StateDirectory) -> None:
    if state.holder() is not None:
        raise StateError(
            "the agent is running and enrolls itself: see `venue-agent status`, or stop it to"
            " enroll manually"
        )


def _show(screen: Screen, enrollment: EnrollmentRecord, *, is_new: bool) -> None:
    if is_new:
        screen.line(("enrolled", "good"))
    else:
        screen.line(("enrolled before", "good"), ("  --force creates a new binding", "quiet"))
    for name, value in (
        ("device", str(enrollment.instance_id)),
        ("binding", str(enrollment.binding_id)),
        ("organization", enrollment.organization_id),
        ("location", enrollment.location_id),
        ("install id", enrollment.legacy_install_id),
        ("capabilities", ", ".join(enrollment.capabilities) or "none"),
    ):
        screen.fact(name, value)


async def _bind(
    config: Config, api_key: ApiKeySource, state: StateDirectory, *, force: bool
) -> tuple[EnrollmentRecord, bool]:
    """Return the enrollment, and whether it is new. Raises ServiceError, StateError."""
    identity, file = IdentityFile(state), DeviceRecordFile(state)
    device_record, _ = load_or_create_device(config, file, identity)
    if device_record.binding is not None and not device_record.is_revoked and not force:
        return device_record.binding.record, False
    client = ServiceClient(config.service, api_key, SystemClock())
    identity_key = identity.load_or_create()
    try:
        enrollment = await enroll_with_challenge(
            config, identity_key, device_record.legacy_install_id, client
        )
    finally:
        await client.close()
    service = config.service
    binding_state = BindingState(file, device_record, base_url=service.base_url)
    binding_state.adopt(enrollment, service.location_id)
    return enrollment, True
