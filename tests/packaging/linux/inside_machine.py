"""What `inside_apt` and `inside_rpm` share: the web server, the installed agent and the commands of
the documents.
"""

import contextlib
import shutil
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.packaging.inside_systemd import (
    OUR_USER,
    RESULTS,
    WITHIN_S,
    agent,
    files_of_the_system,
    print_ok,
    run,
)
from tests.packaging.linux.documents import documented
from tests.packaging.linux.machine import REPOSITORY_HOST
from tests.packaging.local_service import LOCATION, LocalService, until

SITES: Final = RESULTS / "sites"
CURRENT: Final = RESULTS / "current"
"""A link to the directory that the web server serves."""


class InstalledPackages:
    """The agent's package in this machine, and the service of the test."""

    def __init__(self, service: LocalService, home: Path) -> None:
        self.service = service
        self.home = home
        self.initial_files = files_of_the_system()
        self.first_version = self.instance_id = ""
        self.blocks = documented("docs/install.md")

    def wait_until_it_works(self) -> None:
        until(lambda: run("venue-agent", "status", expect=None).returncode == 0, WITHIN_S)

    def configure(self) -> None:
        key = self.home / "key"
        key.write_text(self.service.api_key + "\n")
        agent("service", "install", "--base-url", self.service.base_url, "--location", LOCATION,
              "--api-key-file", str(key))  # fmt: skip
        self.wait_until_it_works()
        self.instance_id = self.service.enrolled_device()["instanceId"]
        print_ok("venue-agent service install: `venue-agent status` ends with 0")

    def require_nothing_left(self, records: str | tuple[str, ...]) -> None:
        """Check that no user or group is left, and no file except the records of the package
        manager. These are the files whose paths begin with ``records``.
        """
        paths = files_of_the_system() - self.initial_files
        left = {path for path in paths if not path.startswith(records)}
        assert not left, sorted(left)[:20]
        for database in ("passwd", "group"):
            run("getent", database, OUR_USER, expect=2)


class _Handler(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        """Ignore If-Modified-Since. Otherwise, if `serve_site` replaces a file by an older one, the
        server would not send the older file.
        """
        del self.headers["If-Modified-Since"]
        return super().send_head()

    def log_message(self, *_: Any) -> None:
        """Do not log requests."""


@contextlib.contextmanager
def repository_server() -> Iterator[None]:
    """Serve `CURRENT` over HTTPS at the address that the documents contain."""
    with Path("/etc/hosts").open("a") as hosts:
        hosts.write(f"127.0.0.1 {REPOSITORY_HOST}\n")
    shutil.copy(RESULTS / "tls.crt", "/usr/local/share/ca-certificates/repository.crt")
    run("update-ca-certificates")
    server = ThreadingHTTPServer(("127.0.0.1", 443), partial(_Handler, directory=str(CURRENT)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(RESULTS / "tls.crt", RESULTS / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def serve_site(name: str) -> None:
    """Let the web server serve another state of the repository."""
    new = CURRENT.with_name("current.new")
    new.unlink(missing_ok=True)
    new.symlink_to(SITES / name)
    new.replace(CURRENT)


def shell(commands: str, expect: int | None = 0) -> str:
    """Run the commands of a document as a user types them. Return what they print."""
    done = run("sh", "-ec", commands, expect=expect)
    return done.stdout + done.stderr
