"""Tests of the sources of configuration values, and of the messages for invalid values."""

from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config import file as config_file
from agent.config.file import LoadedConfig, load
from agent.config.model import Config, LocalConfig, state_dir
from agent.errors import ConfigError

SERVICE = """\
[service]
base_url = "https://ops.example.com/"
location_id = "loc-0001"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def read(file: Path, text: str, **environment: str) -> LoadedConfig[Config]:
    file.write_text(text, encoding="utf-8")
    return load(Config, file, environment)


def problems(file: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read(file, text, **environment)
    return [problem.removeprefix(f"{file}") for problem in error.value.problems]


def test_a_minimal_configuration_has_the_default_values(file: Path) -> None:
    loaded = read(file, SERVICE)

    assert loaded.path == file
    assert loaded.config.service.base_url == "https://ops.example.com"
    assert loaded.config.heartbeat.interval_seconds == 60
    assert loaded.config.network.ports[:3] == (22, 53, 80)
    assert loaded.origins == {"service.base_url": str(file), "service.location_id": str(file)}


def test_values_of_several_sections_are_read(file: Path) -> None:
    loaded = read(
        file,
        SERVICE
        + """
[network]
subnets = ["192.168.1.0/24"]
exclude = ["192.168.1.7", "fe80::/10"]
ports = [80]
[[printers]]
id = "kitchen"
name = "Kitchen printer"
address = "192.168.1.50:9100"
[[printers]]
id = "bar"
name = "Bar"
transport = "usb"
[application]
kiosk_debug_url = "http://127.0.0.1:9222/"
[schedule]
network = "0 4 * * *"
""",
    )

    config = loaded.config
    assert config.network.subnets == ("192.168.1.0/24",)
    assert [p.transport for p in config.printers] == ["network", "usb"]
    assert config.application.kiosk_debug_url == "http://127.0.0.1:9222"
    assert config.schedule.network == "0 4 * * *"


@pytest.mark.parametrize(
    ("variable", "value", "key", "read_as"),
    [
        ("SERVICE__LOCATION_ID", "1234", "service.location_id", "1234"),
        ("SERVICE__LOCATION_ID", "true", "service.location_id", "true"),
        ("SERVICE__BASE_URL", "https://b.example", "service.base_url", "https://b.example"),
        ("SERVICE__REQUEST_TIMEOUT_SECONDS", "7.5", "service.request_timeout_seconds", 7.5),
        ("HEARTBEAT__INTERVAL_SECONDS", "7", "heartbeat.interval_seconds", 7),
        ("NETWORK__ENABLED", "false", "network.enabled", False),
        ("NETWORK__PORTS", "[80, 443]", "network.ports", (80, 443)),
        ("NETWORK__SUBNETS", '["10.0.0.0/24"]', "network.subnets", ("10.0.0.0/24",)),
        ("COMMANDS__DELIVERY", "poll", "commands.delivery", "poll"),
        ("DEVICE__LEGACY_INSTALL_ID", "007", "device.legacy_install_id", "007"),
        ("SCHEDULE__NETWORK", "0 4 * * *", "schedule.network", "0 4 * * *"),
    ],
)
def test_the_environment_overrides_the_file(
    file: Path, variable: str, value: str, key: str, read_as: object
) -> None:
    loaded = read(file, SERVICE, **{f"VENUE_AGENT_{variable}": value})

    assert attrgetter(key)(loaded.config) == read_as
    assert loaded.origins[key] == f"VENUE_AGENT_{variable}"


def test_environment_variables_alone_can_configure_the_agent(file: Path, tmp_path: Path) -> None:
    environment = {
        "VENUE_AGENT_SERVICE__BASE_URL": "https://ops.example.com",
        "VENUE_AGENT_SERVICE__LOCATION_ID": "loc-0001",
        "VENUE_AGENT_API_KEY": "not a configuration value",
        "VENUE_AGENT_CONFIG": "not a configuration value",
        "OTHER__NAME": "x",
    }
    file.write_text("")

    assert load(Config, file, environment).config.service.location_id == "loc-0001"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            SERVICE + "[netwrok]\nenabled = true\n",
            ":4:2: unknown key 'netwrok'; did you mean 'network'?",
        ),
        (
            SERVICE + "[network]\nenabled = true\n  max_host = 5\n",
            ":6:3: unknown key 'max_host' in [network]; did you mean 'max_hosts'?",
        ),
        (SERVICE + "[network]\nxyzzy = 5\n", ":5:1: unknown key 'xyzzy' in [network]"),
        (
            SERVICE + "[heartbeat]\ninterval_seconds = 0\n",
            (
                ":5:1: heartbeat.interval_seconds must be at least 0.1"
                " (it is 0)"
            ),
        ),
        (
            SERVICE + '[network]\nports = [80, "x"]\n',
            ":5:1: network.ports must be a whole number (it is 'x')",
        ),
        (
            SERVICE + '[[printers]]\nid = "a"\nname = "A"\n[[printers]]\nid = "b"\nnam = "B"\n',
            ":9:1: unknown key 'nam' in [printers]; did you mean 'name'?",
        ),
        (
            '[service]\nbase_url = "http://ops.example.com"\nlocation_id = "a"\n',
            (
                ":2:1: service.base_url must be https: plain http is accepted for loopback only"
                " (it is 'http://ops.example.com')"
            ),
        ),
        (
            SERVICE + '[network]\nsubnets = ["8.8.8.0/24"]\n',
            (
                ":5:1: network.subnets is not a private range: only private networks are ever"
                " scanned (it is '8.8.8.0/24')"
            ),
        ),
        (
            SERVICE + '[device]\nlegacy_install_id = 5\n',
            ":5:1: device.legacy_install_id must be a text (it is 5)",
        ),
        ('[service]\nlocation_id = "a"\n', ":1:2: the key 'base_url' in [service] is required"),
        ("", ": the key 'service' is required"),
        ("service = 5\n", ":1:1: service must be a table (it is 5)"),
    ],
)  # fmt: skip
def test_problem_is_reported_with_its_position(file: Path, text: str, complaint: str) -> None:
    assert complaint in problems(file, text)


def test_all_problems_are_reported_at_once(file: Path) -> None:
    lines = problems(file, "[service]\nbase_ur = 1\n[network]\nmax_hosts = 0\n")

    assert len(lines) == 3, (
        "a mistyped key must be one mistake, not an unknown key and a missing key"
    )
    assert len(set(lines)) == 3


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("[service\n", ":1:9: "),
        ('[service]\nbase_url = "a\n', ":2:14: "),
        ("x = 1\nx = 2\n", ":2:6: "),
        ("x =", ":1:4: "),
    ],
)
def test_invalid_toml_is_reported_with_its_position(file: Path, text: str, position: str) -> None:
    (problem,) = problems(file, text)

    assert problem.startswith(position)


def test_a_wrong_value_of_the_environment_names_the_variable(file: Path) -> None:
    (problem,) = problems(file, SERVICE, VENUE_AGENT_NETWORK__MAX_HOSTS="many")

    assert problem == (
        "VENUE_AGENT_NETWORK__MAX_HOSTS: network.max_hosts must be a whole number (it is 'many')"
    )


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        (SERVICE + '[[printers]]\nid = "a"\nname = "A"\n', "VENUE_AGENT_PRINTERS__ID"),
        ("service = 5\n", "VENUE_AGENT_SERVICE__LOCATION_ID"),
    ],
)
def test_a_variable_below_a_value_that_is_not_a_table_is_reported(
    file: Path, text: str, variable: str
) -> None:
    (problem,) = problems(file, text, **{variable: "x"})

    assert problem.startswith(f"{variable}: ")


def test_unknown_variable_is_reported_like_an_unknown_key(file: Path) -> None:
    (problem,) = problems(file, SERVICE, VENUE_AGENT_NETWORK__MAX_HOST="5")

    assert problem == (
        "VENUE_AGENT_NETWORK__MAX_HOST: unknown key 'max_host' in [network];"
        " did you mean 'max_hosts'?"
    )


def test_unreadable_file_is_reported(file: Path, tmp_path: Path) -> None:
    for path, complaint in ((file, "the file does not exist"), (tmp_path, "cannot be read")):
        with pytest.raises(ConfigError, match=complaint):
            load(Config, path, {})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"is not UTF-8 text \(byte 0\)"):
        load(Config, file, {})
    file.write_bytes(b"#" * (config_file.MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="is larger than"):
        load(Config, file, {})


def test_a_file_with_a_byte_order_mark_and_crlf_is_read(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + SERVICE.replace("\n", "\r\n").encode())

    assert load(Config, file, {}).config.service.location_id == "loc-0001"


def test_a_local_collection_needs_no_service(file: Path) -> None:
    file.write_text("[network]\nmax_hosts = 5\n")

    local = load(LocalConfig, file, {}).config

    assert local.service is None
    assert local.network.max_hosts == 5


def test_defaults_are_used_without_a_configuration_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENUE_AGENT_CONFIG", str(tmp_path / "none.toml"))

    loaded = load(LocalConfig, None, {})

    assert loaded.path is None
    assert loaded.config == LocalConfig()
    assert loaded.origins == {}


@given(st.text(max_size=200))
def test_any_text_without_a_service_raises_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.mktemp("config") / "config.toml"
    file.write_text(text, encoding="utf-8", newline="")

    with pytest.raises(ConfigError) as error:
        load(Config, file, {})
    assert all(problem.startswith(str(file)) for problem in error.value.problems)


@pytest.mark.parametrize(
    ("section", "text", "is_valid"),
    [
        ("service", 'base_url = "http://localhost:8080"', True),
        ("service", 'base_url = "http://[::1]:8080/x/"', True),
        ("service", 'base_url = "http://127.9.9.9"', True),
        ("service", 'base_url = "https://ops.example.com/base"', True),
        ("service", 'base_url = "ops.example.com"', False),
        ("service", 'base_url = "ftp://ops.example.com"', False),
        ("service", 'base_url = "https://user:pw@ops.example.com"', False),
        ("service", 'base_url = "https://ops.example.com?x=1"', False),
        ("service", 'base_url = "https://"', False),
        ("service", 'base_url = "http://127.0.0.1.evil.example"', False),
        ("service", 'base_url = "http://ops.local"', False),
        ("service", 'base_url = "http://ops"', False),
        ("service", 'base_url = "http://192.168.1.5"', False),
        ("service", 'base_url = "https://[::1"', False),
        ("network", 'subnets = ["fd00::/8"]', False),
        ("network", 'subnets = ["192.168.0.0/15"]', False),
        ("network", 'subnets = ["x"]', False),
        ("network", 'exclude = ["x"]', False),
        ("network", "ports = [0]", False),
        ("network", "ports = [65535]", True),
        ("application", 'kiosk_debug_url = "http://10.0.0.1:9222"', False),
        ("application", 'kiosk_debug_url = "https://127.0.0.1:9222"', False),
        ("application", 'kiosk_debug_url = ""', True),
        ("schedule", 'network = "every day"', False),
        ("schedule", 'network = ""', True),
        ("limits", "max_report_bytes = 9999", False),
        ("commands", 'delivery = "push"', False),
        ("logging", 'level = "verbose"', False),
        ("device", 'legacy_install_id = ""', True),
    ],
)  # fmt: skip
def test_valid_values_are_accepted_and_invalid_values_refused(
    file: Path, section: str, text: str, is_valid: bool
) -> None:
    if section == "service":
        document = f'[service]\nlocation_id = "a"\n{text}\n'
    else:
        document = f"{SERVICE}[{section}]\n{text}\n"

    if is_valid:
        read(file, document)
    else:
        assert problems(file, document)


def test_the_state_directory_has_its_default_and_overrides(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    config = read(file, SERVICE).config
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b")

    assert state_dir(config.device) == Path("/var/lib/a")
    configured = config.device.model_copy(update={"state_dir": "/srv/agent"})
    assert state_dir(configured) == Path("/srv/agent")
    monkeypatch.delenv("STATE_DIRECTORY")
    monkeypatch.setenv("XDG_STATE_HOME", "/home/someone/.state")
    assert state_dir(config.device).name == "venue-agent"
