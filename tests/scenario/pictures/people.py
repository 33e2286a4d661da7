"""Opens the console with the audit log of a small organization, to take a picture of it."""

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controlplane.cli.main import main
from tests.bench.fleet.service import service
from tests.fakes.console.people import ADA, PASSWORD, make_ada
from tests.scenario.pictures.browser import Browser

CHANGES: Final = (
    ("locations", "name", "loc-0001", "Harbour street"),
    ("keys", "create", "--write", "--name", "till of the bar", "--location", "loc-0001"),
    ("users", "add", "bob@example.com", "--name", "Bob", "--role", "viewer"),
    ("users", "role", "bob@example.com", "manager", "--location", "loc-0001"),
)
"""Commands of `venue-control`. The audit log shows the changes that they make."""


@contextlib.contextmanager
def audit_console(file: Path, tab: Browser) -> Iterator[None]:
    """Show the audit log in ``tab`` while the body runs."""
    make_ada(str(file))
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
        password = Path(directory) / "password"
        password.write_text(PASSWORD)
        for words in CHANGES:
            secret = ("--password-file", str(password)) if words[1] == "add" else ()
            if main([*words, *secret, "--database", str(file)]) != 0:
                raise RuntimeError(f"{words} failed")
    with service(str(file)) as server:
        tab.open(f"http://127.0.0.1:{server.port}/", "document.activeElement.id === 'email'")
        for field, value in (("email", ADA), ("password", PASSWORD)):
            tab.value(f"document.getElementById('{field}').value = {json.dumps(value)}")
        tab.value("document.getElementById('password-form').requestSubmit()")
        tab.wait("!document.getElementById('account').hidden")
        tab.value("location.hash = '#/audit'")
        tab.wait("document.querySelectorAll('.log li').length > 4")
        yield
