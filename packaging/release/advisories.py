"""Serves a folder of advisories on loopback as the API of osv.dev, for audits without a network.

The folder contains advisories in the OSV format, as JSON or YAML files. Sources:
https://google.github.io/osv.dev/post-v1-query/ and https://ossf.github.io/osv-schema/
"""

import contextlib
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from packaging.version import Version

from release import normalize

Advisory = dict[str, Any]


def read_advisories(folder: Path) -> dict[str, list[Advisory]]:
    """Return the advisories about packages of PyPI, by the normalized name of the package."""
    by_package: dict[str, list[Advisory]] = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".json", ".yaml"}:
            advisory = _read(path)
            names = {
                normalize(each["package"]["name"])
                for each in advisory.get("affected", ())
                if each["package"]["ecosystem"] == "PyPI"
            }
            for name in names:
                by_package[name].append(advisory)
    return dict(by_package)


def _read(path: Path) -> Advisory:
    if path.suffix == ".json":
        return dict(json.loads(path.read_text(encoding="utf-8")))
    import yaml

    # This loader returns times as text. Other loaders return values that `json.dumps` refuses.
    return dict(json.loads(json.dumps(yaml.load(path.read_text(), yaml.CBaseLoader))))  # noqa: S506


def advisories_affecting(advisories: list[Advisory], name: str, version: str) -> list[Advisory]:
    """Return the advisories that affect a version of a package."""
    return [
        advisory
        for advisory in advisories
        if any(
            normalize(each["package"]["name"]) == name and _affects(each, version)
            for each in advisory["affected"]
        )
    ]


def _affects(affected: dict[str, Any], version: str) -> bool:
    ranges = [each for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM"]
    return version in affected.get("versions", ()) or any(
        _is_inside(each["events"], Version(version)) for each in ranges
    )


def _is_inside(events: list[dict[str, str]], version: Version) -> bool:
    """Return whether the version is in a range. ``events`` are the events of the range in OSV."""
    ordered = sorted((Version(value), kind) for event in events for kind, value in event.items())
    is_inside = False
    for border, kind in ordered:
        if kind == "introduced" and border <= version:
            is_inside = True
        elif (kind == "fixed" and border <= version) or (
            kind == "last_affected" and border < version
        ):
            is_inside = False
    return is_inside


@contextlib.contextmanager
def serve(by_package: dict[str, list[Advisory]]) -> Iterator[str]:
    """Serve the advisories, and yield the address for queries."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = normalize(query["package"]["name"])
            advisories = advisories_affecting(by_package.get(name, []), name, query["version"])
            body = json.dumps({"vulns": advisories} if advisories else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing for a request."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()
