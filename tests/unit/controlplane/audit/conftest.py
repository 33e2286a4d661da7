"""Settings with a password hash of minimum cost."""

from tests.unit.controlplane.accounts.conftest import settings

__all__ = ["settings"]
