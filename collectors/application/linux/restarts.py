"""How often systemd restarted the service a process belongs to."""

import re
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.linux.services import Unit, read_unit
from collectors.application.readers.processes import Restarts
from collectors.application.source import status_of
from collectors.shared.sysfs import read_text

_SERVICE = re.compile(r"/system\.slice/(?:[^/\n]+/)*([^/\n]{1,200}\.service)(?:/|$)", re.MULTILINE)
_NO_SERVICE: Final = Restarts(reason="it runs outside the system's services: restarts not counted")


def parse_service(cgroup: str) -> str | None:
    """The system service in /proc/PID/cgroup (cgroups(7)), if the process belongs to one."""
    match = _SERVICE.search(cgroup)
    return match[1] if match else None


def count_restarts(root: Path, pid: int, deadline: Deadline, unit: Unit = read_unit) -> Restarts:
    try:
        service = parse_service(read_text(root / "proc" / str(pid) / "cgroup"))
        if service is None:
            return _NO_SERVICE
        restarts = unit(service, deadline).get("NRestarts")
    except Exception as error:  # noqa: BLE001 - costs this one field, with the reason
        status, reason = status_of(error)
        return Restarts(status=status, reason=reason)
    return Restarts(restarts) if isinstance(restarts, int) else _NO_SERVICE
