"""Plants secrets in every input of the agent, and checks that real processes write none of them.

The inputs are the key file, the environment, a valid and two invalid configurations, proxies,
printers, arguments of the venue's programs, and texts of the service. The test searches the output
and errors of every verb, the log, the bundle, the state directory, reports, and the environment of
every child process.
"""

import asyncio
import contextlib
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests import sizes
from tests.fakes.http_server import Reply
from tests.fakes.strict_service import API_KEY, StrictService
from tests.scenario.agent_process import AgentProcess, environment, write_config
from tests.scenario.forked_process import run_forked

AGENT, UNREDACTED = "agent", "tests.fakes.unredacted_agent"

PASTED_KEY = "vck_" + "Planted0" * 5 + "xyz"
"""A key in the format of the reference service."""
PROXY = "Pr0xy%2Fplanted"
SECRETS = {
    "key file": API_KEY,
    "pasted key": PASTED_KEY,
    "proxy of the environment": PROXY,
    "proxy of the environment, decoded": unquote(PROXY),
    "proxy of the file": "fi/le@pl#anted",
    "proxy without a scheme": "sche/me-planted",
    "variable": "variable planted",
    "unknown key": "unkn0wn-planted",
    "several lines": "l1nes-planted",
    "remark": "rem4rk-planted",
    "printer": "pr1nter-planted",
    "argument": "argument-planted",
    "service": "serv1ce-planted",
}
ENVIRONMENT = {
    "HTTPS_PROXY": f"http://user:{PROXY}@127.0.0.1:9",
    "AWS_SECRET_ACCESS_KEY": SECRETS["variable"],
    "LC_ALL": f"C.UTF-8@{PASTED_KEY}",
    "XDG_RUNTIME_DIR": f"/run/{SECRETS['variable']}",
}
BROKEN = f"""
[service]
base_url = "http://127.0.0.1:9"
location_id = "loc-1"
api_key = "{PASTED_KEY}"
password = '{SECRETS["unknown key"]}
proxy = "http://user:{SECRETS["proxy of the file"]}@127.0.0.1:9
# the old password was {SECRETS["remark"]}
[other]
token = \"\"\"
{SECRETS["several lines"]}
"""
"""A configuration that is not TOML."""
WRONG = f"""
[service]
base_url = "http://user:{SECRETS["proxy of the file"]}@127.0.0.1:9"
location_id = ["{PASTED_KEY}"]
api_key = "{SECRETS["unknown key"]}"
proxy = 7
[network]
subnets = ["user:{SECRETS["proxy without a scheme"]}@127.0.0.1:9"]
[logging]
level = "{PASTED_KEY}"
"""
"""A configuration in TOML whose values are invalid."""
VERBS = (
    ("config", "show"), ("config", "check"), ("status",), ("status", "--json"),
    ("history", "--json"), ("config", "show", "--json"), ("config", "check", "--json"),
    ("--debug", "config", "check"), ("enroll",), ("collect", "application", "--json"),
    ("collect", "network", "--json"), ("status", f"--{PASTED_KEY}"),
)  # fmt: skip
UNREDACTED_VERBS = VERBS[: sizes.amount(medium=3, large=len(VERBS))]
"""The verbs with which the search itself is tested."""
DAEMON = (("run",), ("--debug", "run"))


class Search:
    """The data that the processes wrote, by the place where it was written."""

    def __init__(self, module: str, verbs: tuple[tuple[str, ...], ...]) -> None:
        self._module = module
        self.verbs = verbs
        self._written: dict[str, bytes] = {}

    def add(self, place: str, content: bytes) -> None:
        self._written[place] = self._written.get(place, b"") + content

    def matches(self) -> set[tuple[str, str]]:
        """Return the name of each secret that was written, with the place where it was written."""
        return {
            (name, place)
            for place, content in self._written.items()
            for name, secret in SECRETS.items()
            if secret.encode() in content
        }

    def contains(self, place: str, text: str) -> bool:
        return text.encode() in self._written[place]

    async def run(self, label: str, config: Path, *words: str) -> None:
        _, output, errors = await run_forked(
            self._module, *words, "--config", str(config), environment=environment()
        )
        self.add(f"{label}: {' '.join(words)}", (output + errors).encode())

    async def run_doctor(self, label: str, config: Path) -> None:
        bundle = config.parent / f"{label}.zip"
        await self.run(label, config, "doctor", "--bundle", str(bundle), "--json")
        with zipfile.ZipFile(bundle) as archive:
            for name in archive.namelist():
                self.add(f"{label}: bundle", archive.read(name))
            reports = {name for name in archive.namelist() if name.startswith("reports/")}
        # With an invalid configuration, nothing is collected, because the agent cannot read which
        # addresses the configuration excludes from the scan.
        assert ("reports/network.json" in reports) is (label == "running")
        assert ("reports/network.txt" in reports) is (label != "running")

    def add_children(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                # Between fork and exec, the child still has the environment of the agent.
                if b"collectors" in Path(f"/proc/{child}/cmdline").read_bytes():
                    self.add("environment of a child", Path(f"/proc/{child}/environ").read_bytes())

    def add_state(self, state: Path) -> None:
        for path in state.rglob("*"):
            if path.is_file():
                self.add(f"state: {path.name}", path.read_bytes())


@pytest.fixture
def till_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A running program of the venue that has a password among its arguments.

    Secrets are also set in the environment of the tests, which the agent inherits.
    """
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "guessed"))
    program = tmp_path / "till-program"
    shutil.copy("/bin/sh", program)
    arguments = (str(program), "-c", "read line; exit 0", f"--password={SECRETS['argument']}")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE) as running:
        yield
        running.communicate(b"\n")


async def _search_a_daemon(search: Search, home: Path, module: str) -> None:
    async with StrictService() as service:
        config = write_config(
            home,
            service.base_url,
            service=f"# the old api_key = '{PASTED_KEY}', or {SECRETS['remark']}: a secret",
            logging='level = "debug"',
            application='watch_processes = ["till-program"]',
            printers="",
        )
        valid_text = config.read_text().replace("[printers]\n", "") + (
            '[[printers]]\nid = "bar"\nname = "Bar, password=' + SECRETS["printer"] + '"\n'
            f'address = "user:{SECRETS["printer"]}@127.0.0.1:9"\n'
        )
        config.write_text(valid_text)
        async with _running(module, config) as agent:
            for kind in ("network", "application"):
                request_id = await service.request_report(kind)
                while service.report_for(request_id) is None:
                    search.add_children(agent.process.pid)
                    assert agent.process.returncode is None, agent.log
                    await asyncio.sleep(0.005)
            for text, message in ((BROKEN, "not reloaded"), (WRONG, "must be a subnet")):
                config.write_text(text)
                agent.process.send_signal(signal.SIGHUP)
                await agent.until_logged(message)
                await search.run("beside a daemon", config, "status", "--json")
            config.write_text(valid_text)
            problem = f'{{"detail": "no key {API_KEY}, or http://u:{SECRETS["service"]}@h"}}'
            service.overrides["heartbeat"] = lambda: Reply(400, problem.encode())
            await agent.until_logged("or http://")
            await asyncio.gather(*(search.run("running", config, *verb) for verb in search.verbs))
            await search.run_doctor("running", config)
            await agent.stop()
        search.add("log", agent.log.encode())
        assert search.contains("environment of a child", "PATH=")
        assert search.contains("log", "not reloaded")
        search.add("reports", b"".join(service.bodies))
        search.add_state(home / "state")


@contextlib.asynccontextmanager
async def _running(module: str, config: Path) -> AsyncIterator[AgentProcess]:
    log = config.parent / "agent.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, "run", "--config", str(config),
            stdout=output, stderr=output, stdin=asyncio.subprocess.DEVNULL, env=environment(),
        )  # fmt: skip
    try:
        yield AgentProcess(process, config.parent, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _search_broken_configurations(search: Search, home: Path) -> None:
    home.mkdir()
    config = home / "config.toml"
    (home / "api-key").write_text(API_KEY)
    for label, text in {"broken": BROKEN, "wrong": WRONG}.items():
        config.write_text(text)
        verbs = (*search.verbs, *DAEMON)
        await asyncio.gather(*(search.run(label, config, *words) for words in verbs))
        await search.run_doctor(label, config)


async def _leaks_of(
    module: str, home: Path, verbs: tuple[tuple[str, ...], ...] = VERBS
) -> set[tuple[str, str]]:
    search = Search(module, verbs)
    await _search_a_daemon(search, home, module)
    await _search_broken_configurations(search, home / "broken")
    return search.matches()


@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")
async def test_no_planted_secret_is_written_anywhere(tmp_path: Path, till_program: None) -> None:
    assert await _leaks_of(AGENT, tmp_path) == set()


@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")
async def test_search_detects_the_secrets_without_redaction(
    tmp_path: Path, till_program: None
) -> None:
    leaks = await _leaks_of(UNREDACTED, tmp_path, UNREDACTED_VERBS)
    leaking_outputs = {place for _, place in leaks}
    assert {"log", "reports", "environment of a child", "state: status.json"} <= leaking_outputs
    assert {"broken: bundle", "wrong: bundle", "running: bundle"} <= leaking_outputs
    assert {"wrong: config check", "running: config show"} <= leaking_outputs
    detected_names = {name for name, _ in leaks}
    assert set(SECRETS) - detected_names <= {
        "argument",
        "proxy of the environment, decoded",
        "variable",  # a child inherits only the variables of a fixed list
    }
