"""The client that the verbs of the retail API speak through."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.cli.screen.progress import Progress
from controlplane.client.connection import RETAIL_KEY, address, read_key
from controlplane.client.retail import RetailClient
from controlplane.client.waiting import Patience


@contextmanager
def retail_client_of(options: argparse.Namespace) -> Iterator[RetailClient]:
    """Open the client; what the service makes it wait for is shown. Raises UsageError."""
    url = address(options.base_url, os.environ)
    key = read_key(options.retail_key_file, os.environ, RETAIL_KEY)
    with RetailClient(url, key, patience=Patience(on_wait=Progress().waits)) as client:
        yield client
