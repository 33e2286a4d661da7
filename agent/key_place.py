"""Where a person's command finds the API key, also where only the service itself is handed it.

systemd gives the daemon its key as a credential that no other process sees; the file it comes
from lies beside the configuration.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from agent.config import default_config_path
from agent.credential import SYSTEMD_CREDENTIAL, ApiKeySource, find_api_key


def key_place(
    api_key_file: str, config: Path | None = None, environment: Mapping[str, str] = os.environ
) -> ApiKeySource:
    """Tell where the key is to be read from; does not read it."""
    source = find_api_key(api_key_file, environment)
    beside = (config or default_config_path()).parent / SYSTEMD_CREDENTIAL
    if source.file is None and source.variable is None and beside.exists():
        return ApiKeySource(beside, None)
    return source
