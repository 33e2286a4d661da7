"""All operations of the service. An area that is added here is served and in the document."""

from typing import Final

from controlplane.analytics.registry import ANALYTICS, REPORTS
from controlplane.operation.operation import Area, Operation
from controlplane.remote_control.registry import REMOTE_CONTROL
from controlplane.support.registry import SUPPORT

AREAS: Final[tuple[Area, ...]] = (REMOTE_CONTROL, SUPPORT, ANALYTICS, REPORTS)
OPERATIONS: Final[tuple[Operation, ...]] = tuple(each for area in AREAS for each in area.operations)
