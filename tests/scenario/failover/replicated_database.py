"""A PostgreSQL server and its synchronous standby, each on a host of its own."""

import os
import pwd
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.postgresql import PROGRAM_DIRECTORIES
from tests.scenario.failover.hosts import NETWORK, Host, run


class Server:
    """A PostgreSQL server on a host, which listens on TCP."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self._data = folder / f"data-{host.address}"
        self._folder = folder
        account = pwd.getpwnam("postgres")
        self._user = account.pw_uid, account.pw_gid

    def create(self) -> None:
        self._run("initdb", "-D", str(self._data), "-U", "venue", "-A", "trust", "-E", "UTF8")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all,replication venue {NETWORK}.0/24 trust\n")

    def copy_from(self, primary: "Server") -> None:
        """Create this server as a standby of ``primary``."""
        source = ("-h", primary.host.address, "-U", "venue", "-X", "stream", "-c", "fast", "-R")
        self._run("pg_basebackup", *source, "-D", str(self._data))

    def start(self) -> None:
        options = "-c unix_socket_directories='' -c listen_addresses='*' -c max_connections=100"
        self._control("-o", options, "start")

    def restart(self) -> None:
        self._control("-m", "fast", "restart")

    def promote(self) -> None:
        self._control("promote")

    def stop(self) -> None:
        self._control("-m", "immediate", "stop")

    def query(self, text: str, database: str = "venue") -> list[str]:
        words = ("-h", self.host.address, "-U", "venue", "-d", database, "-A", "-t", "-c", text)
        return self._run("psql", *words).split()

    def _control(self, *words: str) -> None:
        log = self._folder / f"log-{self.host.address}"
        self._run("pg_ctl", "-D", str(self._data), "-w", "-l", str(log), *words)

    def _run(self, program: str, *words: str) -> str:
        path = str(PROGRAM_DIRECTORIES[-1] / program)
        return run(*self.host.command(path, *words, user=self._user))


def start_replicated(
    primary_host: Host, standby_host: Host, stack: ExitStack
) -> tuple[Server, Server]:
    """Start a server and its standby. A commit waits until the standby has stored it."""
    folder = Path(tempfile.mkdtemp(prefix="venue-failover-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    account = pwd.getpwnam("postgres")
    os.chown(folder, account.pw_uid, account.pw_gid)
    primary, standby = Server(primary_host, folder), Server(standby_host, folder)
    primary.create()
    primary.start()
    stack.callback(primary.stop)
    primary.query("CREATE DATABASE venue", "postgres")
    standby.copy_from(primary)
    standby.start()
    stack.callback(standby.stop)
    # The standby was copied before this change, so this setting is empty in the standby. After the
    # standby is promoted, its commits therefore do not wait for another server.
    primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.query("SELECT pg_reload_conf()")
    return primary, standby


def url_of(*servers: Server) -> str:
    """Return a database URL. A client connects to the first of the servers that permits writing."""
    hosts = ",".join(each.host.address for each in servers)
    return f"postgresql+psycopg://venue@/venue?host={hosts}&target_session_attrs=read-write"
