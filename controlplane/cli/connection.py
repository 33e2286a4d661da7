"""The client a verb speaks through, and ids as people type them."""

import argparse
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from uuid import UUID

from agent.wire.operator_operations import Device
from controlplane.cli.errors import CommandError, UsageError
from controlplane.client.operations import OperationsClient, connect


def client_of(options: argparse.Namespace) -> AbstractContextManager[OperationsClient]:
    return connect(options.base_url, options.api_key_file, os.environ)


def id_of(text: str, thing: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not the id of a {thing}: a UUID is needed") from error


def device_of(client: OperationsClient, text: str) -> UUID:
    """Return the device that is meant by its id, its name, or the first characters of its id.

    Raises CommandError unless it is exactly one.
    """
    try:
        return UUID(text)
    except ValueError:
        return device_named(text, client.devices()[0])


def device_named(text: str, devices: Sequence[Device]) -> UUID:
    word = text.casefold()
    found = [
        device
        for device in devices
        if device.legacy_install_id.casefold() == word or str(device.instance_id).startswith(word)
    ]
    if len(found) == 1:
        return found[0].instance_id
    if not found:
        raise CommandError(f"no device is called {text!r}, nor does an id begin with it")
    ids = ", ".join(str(device.instance_id) for device in found)
    raise CommandError(f"{text!r} may be any of {len(found)} devices: {ids}")
