"""Settings of the audit tests: a password hash with minimum cost."""

from tests.unit.controlplane.accounts.conftest import settings

__all__ = ["settings"]
