"""The service with passwords that are quick to hash."""

from tests.unit.controlplane.accounts.conftest import settings

__all__ = ["settings"]
