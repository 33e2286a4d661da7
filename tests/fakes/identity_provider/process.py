"""Starts the fake identity provider, and changes its state."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tests.paths import ROOT

ADA = {
    "sub": "ada-1",
    "email": "ada@contoso.example",
    "email_verified": True,
    "name": "Ada",
    "groups": ["venue-owners"],
}
DEFAULTS: dict[str, Any] = {
    "id_token": {}, "algorithm": "RS256", "is_disabled": False, "issues_refresh_tokens": True,
    "refreshes_id_tokens": False, "userinfo": {}, "token_requests": [],
    "metadata": {}, "answer": {}, "replies": {}, "codes": {}, "tokens": {}, "calls": [],
}  # fmt: skip


class ProviderProcess:
    def __init__(self, issuer: str) -> None:
        self.issuer = issuer

    def control(self, **changes: Any) -> list[str]:
        """Change the provider's state. Return the paths of all calls that it has received."""
        calls: list[str] = self._control(changes)["calls"]
        return calls

    def token_requests(self) -> list[dict[str, str]]:
        """Return the fields of each call of the token endpoint."""
        requests: list[dict[str, str]] = self._control({})["token_requests"]
        return requests

    def _control(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        body = json.dumps(changes).encode()
        with urllib.request.urlopen(f"{self.issuer}/control", body, timeout=20) as reply:
            answer: dict[str, Any] = json.loads(reply.read())
        return answer

    def reset(self, now: datetime) -> None:
        """Restore the defaults: Ada is signed in at the provider."""
        self.control(**DEFAULTS, claims=ADA, now=int(now.timestamp()))


@contextmanager
def provider_process() -> Iterator[ProviderProcess]:
    command = (sys.executable, "-m", "tests.fakes.identity_provider")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ProviderProcess(process.stdout.readline().strip())
        finally:
            process.kill()
