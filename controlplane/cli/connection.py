"""The client a verb speaks through, and ids as people type them."""

import argparse
import os
from contextlib import AbstractContextManager
from uuid import UUID

from controlplane.cli.errors import UsageError
from controlplane.client.operations import OperationsClient, connect


def client_of(options: argparse.Namespace) -> AbstractContextManager[OperationsClient]:
    return connect(options.base_url, options.api_key_file, os.environ)


def id_of(text: str, thing: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not the id of a {thing}: a UUID is needed") from error
