"""What the checks know and find out for each other.

Each field below "found" is written by the one check its comment names, and read only by checks
that depend on that one: no lock is needed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.model import default_config_path, system_config
from agent.doctor.route import Route

if TYPE_CHECKING:
    from agent.adapters.storage.device_record import DeviceRecord
    from agent.adapters.storage.state import StateDirectory
    from agent.adapters.storage.status_file import DaemonStatus
    from agent.config.model import Config, LocalConfig
    from agent.doctor.service_unit import UnitFacts, UnitReader
    from agent.errors import ServiceError
    from agent.wire.device_operations import EnrollmentRecord
    from collectors.contract import NetworkFacts


@dataclass(frozen=True, slots=True)
class Answer:
    """The service's answer to one request.

    ``current`` is meant only where ``error`` is None; None then means: no binding.
    """

    current: "EnrollmentRecord | None" = None
    error: "ServiceError | None" = None


@dataclass(slots=True)
class Context:
    """Where to look: the configuration file, the environment, the service manager."""

    config_path: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    unit_reader: "UnitReader | None" = None
    config_text: str | None = field(default=None, repr=False)
    log_text: str | None = field(default=None, repr=False)
    """Both for the bundle, where they were read before root's rights were given up."""

    @property
    def is_of_the_machine(self) -> bool:
        """Whether the machine's own agent is looked at, and not one of this user's own."""
        return (self.config_path or default_config_path()).absolute() == system_config()

    # found
    local: "LocalConfig | None" = None  # configuration; also of one that lacks [service]
    config: "Config | None" = None  # configuration
    is_hidden: bool = False  # configuration; it is closed to this user
    state: "StateDirectory | None" = None  # configuration; the best guess if it failed
    api_key: str | None = field(default=None, repr=False)  # api-key
    record: "DeviceRecord | None" = None  # device-record
    daemon_pid: int | None = None  # daemon
    daemon: "DaemonStatus | None" = None  # daemon
    facts: "NetworkFacts | None" = None  # collector
    route: Route | None = None  # route
    service_time: datetime | None = None  # clock
    skew_s: float | None = None  # clock; the service's time minus ours
    answer: Answer | None = None  # service
    challenge_answer: Answer | None = None  # write-grant
    contact_age_s: float | None = None  # daemon; since the service last answered it
    unit: "UnitFacts | None" = None  # boot
