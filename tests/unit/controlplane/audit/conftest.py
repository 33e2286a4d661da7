"""The service with a fast password hash."""

from tests.unit.controlplane.accounts.conftest import settings

__all__ = ["settings"]
