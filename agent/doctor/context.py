"""The input of the checks: configuration, environment, and the facts of earlier checks.

Checks only read the context. The runner stores the facts of a check's outcome before it starts the
checks that depend on this check.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.config.model import is_system_config
from agent.rules.route import Route

if TYPE_CHECKING:
    from agent.adapters.storage.device_record import DeviceRecord
    from agent.adapters.storage.state import StateDirectory
    from agent.adapters.storage.status_file import DaemonStatus
    from agent.config.model import Config, LocalConfig, Service
    from agent.doctor.public_status import UnitFacts, UnitReader
    from agent.errors import ServiceError
    from agent.wire.device_operations import EnrollmentRecord
    from collectors.contract import NetworkFacts


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of one call of doctor to the service.

    ``current`` is the enrollment record that the operation `current` returned. It is None for other
    operations, if the call failed, and if the service has no binding for the API key. ``error`` is
    None if the call succeeded.
    """

    current: "EnrollmentRecord | None" = None
    error: "ServiceError | None" = None


@dataclass(slots=True)
class Context:
    """The input of all checks, and the facts that checks have returned so far."""

    config_path: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    unit_reader: "UnitReader | None" = None
    """Returns the state of the agent's service. None means `public_status.read_unit`."""
    config_text: str | None = field(default=None, repr=False)
    log_text: str | None = field(default=None, repr=False)
    """``config_text`` and ``log_text`` are for the bundle. They are read before root drops its
    privileges."""

    @property
    def is_system_agent(self) -> bool:
        """Whether the checks are for the agent of the machine, not for an agent of this user."""
        return is_system_config(self.config_path)

    @property
    def service(self) -> "Service":
        """The service's settings. Only for checks that depend on the check `configuration`."""
        if self.config is None:
            raise LookupError("there is no configuration")
        return self.config.service

    # Facts. The comment of each one begins with the name of the check that returns it.
    local: "LocalConfig | None" = None  # configuration; --bundle sets it even without [service]
    config: "Config | None" = None  # configuration
    is_hidden: bool = False  # configuration; whether this user cannot read the file
    state: "StateDirectory | None" = None  # configuration; a guess if no valid file was read
    api_key: str | None = field(default=None, repr=False)  # api-key
    record: "DeviceRecord | None" = None  # device-record
    daemon_pid: int | None = None  # daemon
    daemon: "DaemonStatus | None" = None  # daemon
    network_facts: "NetworkFacts | None" = None  # collector
    route: Route | None = None  # route
    current_result: CallResult = CallResult()  # captive-portal
    challenge_result: CallResult = CallResult()  # write-grant
    contact_age_s: float | None = None  # daemon; since the last successful call
    unit: "UnitFacts | None" = None  # boot

    def add(self, facts: Mapping[str, Any]) -> None:
        """Store the facts of a check."""
        for name, value in facts.items():
            setattr(self, name, value)
