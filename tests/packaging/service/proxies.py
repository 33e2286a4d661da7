"""Runs a real nginx or Caddy on loopback, with our example configuration and a certificate of a
test authority.
"""

import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.tls_front import make_authority, server_context
from tests.packaging.local_service import until
from tests.packaging.service.service_process import free_port
from tests.paths import ROOT

EXAMPLES = ROOT / "packaging/proxy"
NGINX = """\
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
{user}
worker_rlimit_nofile 4096;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log;
    {paths}
{site}
}}
"""
CADDY = """
{{
	admin off
	auto_https off
	grace_period 2s
	storage file_system {folder}
	servers {{
		protocols h1 h2
"""
NGINX_CALLS = 50
"""Maximum number of simultaneous calls from one network in nginx, instead of the 1024 of the
example configuration."""
SHORT_TIMEOUT_S = 6
"""How long nginx waits for the next byte of a stream. The example configuration has 75 s."""


@dataclass(frozen=True, slots=True)
class Proxy:
    base_url: str
    authority: Path
    process: "subprocess.Popen[bytes]"

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))


@contextlib.contextmanager
def running_proxy(kind: str, folder: Path, service_port: int) -> Iterator[Proxy]:
    """Run a proxy, "nginx" or "caddy". Raises LookupError if it is not installed."""
    program = shutil.which(kind, path="/usr/sbin:/usr/bin")
    if program is None:
        raise LookupError(f"install {kind}")
    authority = make_authority(folder)
    server_context(folder, authority)  # writes server.pem: key and certificate
    port = free_port()
    configuration = folder / kind
    if kind == "nginx":
        configuration.write_text(nginx_configuration(folder, port, service_port))
        words = [program, "-p", str(folder), "-c", str(configuration), "-e", f"{folder}/error.log"]
    else:
        configuration.write_text(caddy_configuration(folder, port, service_port))
        words = [program, "run", "--adapter", "caddyfile", "--config", str(configuration)]
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            words, stdout=log, stderr=log, cwd=folder, env={"HOME": str(folder)}
        )
    try:
        until(lambda: _is_listening(port), 20)
        yield Proxy(f"https://127.0.0.1:{port}", authority.file, process)
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()


def nginx_configuration(folder: Path, port: int, service_port: int) -> str:
    """Return the example configuration with the paths and addresses of this machine."""
    site = _replace(
        (EXAMPLES / "nginx.conf").read_text(),
        {
            "server 127.0.0.1:8470;": f"server 127.0.0.1:{service_port};",
            "    listen 80;\n    listen [::]:80;\n": f"    listen 127.0.0.1:{free_port()};\n",
            "    listen 443 ssl http2;\n    listen [::]:443 ssl http2;\n":
                f"    listen 127.0.0.1:{port} ssl http2;\n",
            "/etc/letsencrypt/live/ops.example.com/fullchain.pem": f"{folder}/server.pem",
            "/etc/letsencrypt/live/ops.example.com/privkey.pem": f"{folder}/server.pem",
            "limit_conn  venue_calls 1024;": f"limit_conn venue_calls {NGINX_CALLS};",
            "proxy_buffering off;": f"proxy_buffering off; proxy_read_timeout {SHORT_TIMEOUT_S}s;",
        },
    )  # fmt: skip
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n    ".join(f"{name}_temp_path {folder}/{name};" for name in names)
    user = "user root;" if folder.owner() == "root" else ""
    return NGINX.format(folder=folder, user=user, paths=paths, site=site)


def caddy_configuration(folder: Path, port: int, service_port: int) -> str:
    certificate = f"tls {folder}/server.pem {folder}/server.pem\n\tbind 127.0.0.1"
    return _replace(
        (EXAMPLES / "Caddyfile").read_text(),
        {
            "\n{\n\tservers {\n": CADDY.format(folder=folder),
            "\nops.example.com {\n": f"\nhttps://127.0.0.1:{port} {{\n\t{certificate}\n",
            "reverse_proxy 127.0.0.1:8470": f"reverse_proxy 127.0.0.1:{service_port}",
        },
    )


def _replace(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
