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


def main() -> None:
    database, key_file, *descriptor = sys.argv[1:]
    outside = [socket.socket(fileno=int(number)) for number in descriptor]
    inside = bind("127.0.0.1", outside[0].getsockname()[1] if outside else 0)
    links = SignInLinks()
    link = links.offer(Path(key_file).read_text().strip())
    sys.stdout.write(f"sign in at {url_of(inside)}{link}\n")
    settings = Settings(request_ttl_s=REQUEST_TTL_S)
    on_listening = partial(announce, inside)
    serve(database, settings, "info", inside, on_listening, further_sockets=outside, links=links)


if __name__ == "__main__":
    main()
