"""`venue-agent enroll`: enroll now, and print the record."""

import argparse
import asyncio
import sys

from agent.adapters.clock import SystemClock
from agent.adapters.device_record import DeviceRecordFile
from agent.adapters.facade import Facade
from agent.adapters.identity import Identity
from agent.adapters.state import StateDirectory
from agent.capabilities import capabilities_of
from agent.cli.options import add_config_option, add_json_option
from agent.config import Config, state_dir
from agent.credential import find_api_key
from agent.daemon import load_for_daemon
from agent.device_setup import device_at_start
from agent.errors import ServiceError
from agent.tasks.enroll import Place, explain, sign_up
from agent.tasks.link import DirectCaller
from agent.tasks.standing import Standing
from agent.wire.device_operations import EnrollmentRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "--force", action="store_true", help="enroll anew, even if there is a binding"
    )


def run(options: argparse.Namespace) -> int:
    config = load_for_daemon(options.config).config
    state = StateDirectory(state_dir(config.device))
    state.prepare()
    with state.hold():
        record = asyncio.run(_bind(config, state, force=options.force))
    if options.json:
        sys.stdout.write(record.model_dump_json(indent=2) + "\n")
        return 0
    for name, value in (
        ("instance", record.instance_id),
        ("binding", record.binding_id),
        ("organization", record.organization_id),
        ("location", record.location_id),
        ("install id", record.legacy_install_id),
        ("capabilities", ", ".join(record.capabilities)),
    ):
        sys.stdout.write(f"{name:14}{value}\n")
    return 0


async def _bind(config: Config, state: StateDirectory, *, force: bool) -> EnrollmentRecord:
    """Return the binding held then. Raises ServiceError in words for people, StateError."""
    identity, file = Identity(state), DeviceRecordFile(state)
    record = device_at_start(config, file, identity).record
    if record.binding is not None and not record.is_revoked and not force:
        return record.binding.record
    facade = Facade(config.service, find_api_key(config.service.api_key_file), SystemClock())
    place = Place(config.service.location_id, capabilities_of(config), config.enrollment)
    key = identity.load_or_create()
    try:
        bound = await sign_up(place, key, record.legacy_install_id, facade, DirectCaller())
    except ServiceError as error:
        raise ServiceError(f"not enrolled: {explain(error)}") from None
    finally:
        await facade.close()
    Standing(file, record, base_url=config.service.base_url).adopt(bound, place.location_id)
    return bound
