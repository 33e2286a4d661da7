"""Shared steps of the tests that run in the machine: web server, commands of documents."""

import contextlib
import shutil
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.packaging.inside_systemd import RESULTS, run
from tests.packaging.linux.machine import REPOSITORY_HOST

SITES: Final = RESULTS / "sites"
CURRENT: Final = RESULTS / "current"
"""A link to the directory that the web server serves."""


class _Handler(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        """Always send the content: the states of the repository are not in the order of time."""
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
