"""Runs the service of the demo: `venue-control serve` with a sign-in link for its console.

    python -m controlplane.demo.service DATABASE KEY_FILE [SOCKET]

``SOCKET`` is given if the demo runs in a network namespace. It is the descriptor of a socket that
is bound in the machine's own network, where the browser runs. The service listens on this socket
and at the same address in the namespace, where the agent runs.
"""

import socket
import sys
from functools import partial
from pathlib import Path
from typing import Final

from controlplane.accounts.sign_in_links import SignInLinks
from controlplane.server import announce, bind, serve, url_of
from controlplane.settings import Settings

REQUEST_TTL_S: Final = 90
"""Shorter than the default, so that the demo ends soon if a report does not arrive."""


def main() -> None:
    database, key_file, *descriptor = sys.argv[1:]
    outside_sockets = [socket.socket(fileno=int(number)) for number in descriptor]
    port = outside_sockets[0].getsockname()[1] if outside_sockets else 0
    listener = bind("127.0.0.1", port)
    links = SignInLinks()
    link = links.offer(Path(key_file).read_text().strip())
    sys.stdout.write(f"sign in at {url_of(listener)}{link}\n")
    settings = Settings(request_ttl_s=REQUEST_TTL_S)
    on_listening = partial(announce, listener)
    serve(
        database, settings, "info", listener, on_listening,
        further_sockets=outside_sockets, links=links,
    )  # fmt: skip


if __name__ == "__main__":
    main()
