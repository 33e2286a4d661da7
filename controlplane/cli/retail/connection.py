"""The client of the commands of the retail API."""

import argparse

from controlplane.cli.screen.progress import Progress
from controlplane.client.retail import RetailClient, connect
from controlplane.client.waiting import Patience


def retail_client_of(options: argparse.Namespace, progress: Progress | None = None) -> RetailClient:
    """Return the client. Waits that the service asks for are shown. Raises UsageError."""
    patience = Patience(on_wait=(progress or Progress()).waits)
    return connect(options.base_url, options.retail_key_file, patience=patience)
