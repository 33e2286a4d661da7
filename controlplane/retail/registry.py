"""Every operation of the retail API but for the two of tokens, which need none."""

from typing import Any, Final

from controlplane.retail.operation import RetailOperation

OPERATIONS: Final[tuple[RetailOperation[Any], ...]] = ()
