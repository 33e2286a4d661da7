"""The source of the API key. The key is read again for each use.

Sources in order of precedence:

1. the configured file
2. the systemd credential ``api-key`` (systemd.exec(5), LoadCredential=)
3. the variable VENUE_AGENT_API_KEY
4. the file ``api-key`` next to the configuration, from which systemd loads the credential
"""

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.config.model import default_config_path, may_exist
from agent.errors import ApiKeyUnreadable, ConfigError, ConfigNotVisible
from agent.redaction.known import remember
from agent.regular_file import read_regular

MAX_KEY_LENGTH = 4096
VARIABLE = "VENUE_AGENT_API_KEY"
SYSTEMD_CREDENTIAL = "api-key"


@dataclass(frozen=True, slots=True)
class ApiKeySource:
    """The source of the key: a file, which is read for each use, or the variable VARIABLE.

    If ``file`` and ``variable_value`` are None, there is no key.
    """

    file: Path | None
    variable_value: str | None

    def describe(self) -> str:
        """Return the source as text for messages."""
        if self.file is not None:
            return f"the file {self.file}"
        return f"the variable {VARIABLE}" if self.variable_value is not None else "nowhere"

    def readers(self) -> Literal["owner", "group", "everyone"]:
        """Return who can read the key's file.

        Returns "owner" on Windows, for the variable, and if the file's rights cannot be read.
        """
        if self.file is None or sys.platform == "win32":
            return "owner"
        try:
            mode = self.file.stat().st_mode
        except OSError:
            return "owner"
        if mode & stat.S_IROTH:
            return "everyone"
        return "group" if mode & stat.S_IRGRP else "owner"

    def access_problem(self) -> str | None:
        """Return an error message if every user can read the key, else None."""
        if self.readers() != "everyone":
            return None
        return f"every user of this machine can read {self.describe()}: run `chmod 600` on it"

    def is_closed(self) -> bool:
        """Return whether the key exists, but this user cannot read it."""
        try:
            if self.file is not None:
                self.file.open("rb").close()
        except OSError as error:
            return isinstance(error, PermissionError)
        return False

    def read_as_configured(self) -> str:
        """Return the current key, as `read` does, but raise ConfigError if it cannot be read."""
        try:
            return self.read()
        except ApiKeyUnreadable as error:
            if self.is_closed():
                problem = f"the API key in {self.describe()} is closed to this user"
                raise ConfigNotVisible((problem,)) from None
            raise ConfigError((str(error),)) from None

    def read(self) -> str:
        """Return the current key. Raises ApiKeyUnreadable if it cannot be read."""
        if self.file is None and self.variable_value is None:
            raise ApiKeyUnreadable(
                "there is no API key: set service.api_key_file, the systemd credential"
                f" {SYSTEMD_CREDENTIAL!r} or {VARIABLE}"
            )
        if self.file is None:
            return parse_key(self.variable_value or "", self.describe())
        try:
            text = read_regular(self.file, MAX_KEY_LENGTH + 1).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ApiKeyUnreadable(f"{self.describe()} is not a text file") from None
        except OSError as error:
            fix = "; write the key into this file" if isinstance(error, FileNotFoundError) else ""
            raise ApiKeyUnreadable(
                f"the API key cannot be read from {self.file}: {error.strerror}{fix}"
            ) from None
        return parse_key(text, self.describe())


def key_source(
    api_key_file: str, config: Path | None = None, environment: Mapping[str, str] = os.environ
) -> ApiKeySource:
    """Return the source of the API key, without reading it.

    systemd passes the content of the file next to the configuration to the daemon as a credential.
    A command that a user runs gets no credential, and reads this file itself.
    """
    if api_key_file:
        return ApiKeySource(Path(api_key_file), None)
    if directory := environment.get("CREDENTIALS_DIRECTORY"):
        from_systemd = Path(directory) / SYSTEMD_CREDENTIAL
        if from_systemd.exists():
            return ApiKeySource(from_systemd, None)
    variable = environment.get(VARIABLE)
    file_beside_config = (config or default_config_path()).parent / SYSTEMD_CREDENTIAL
    if variable is None and may_exist(file_beside_config):
        return ApiKeySource(file_beside_config, None)
    return ApiKeySource(None, variable)


def parse_key(text: str, source: str) -> str:
    """Return the trimmed key. Raises ApiKeyUnreadable if ``text`` cannot be an API key.

    ``source`` names the origin of ``text`` in the error message.
    """
    key = text.strip()
    if not key:
        raise ApiKeyUnreadable(f"{source} is empty: write the API key into it")
    if len(key) > MAX_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
        raise ApiKeyUnreadable(f"{source} does not contain an API key (one line of plain text)")
    remember(key)
    return key
