"""Tests of `config check`, `show`, `schema` and `example`: exit codes, JSON, and no secrets."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from agent.cli.main import main
from tests.unit.agent.cli.running_state import write_config


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path)


def test_config_check_accepts_a_valid_configuration(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "check", "--config", str(config)]) == 0
    assert capsys.readouterr().out == f"{config}: ok\n"
    assert main(["config", "check", "--json", "--config", str(config)]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "problems": []}


def test_config_check_reports_an_invalid_configuration(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text() + '[commands]\ndelivery = "strem"\n')
    assert main(["config", "check", "--config", str(config)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"venue-agent: {config}:8:1: commands.delivery")
    assert "did you mean 'stream'?" in captured.err
    assert main(["config", "check", "--json", "--config", str(config)]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert len(document["problems"]) == 1


def test_config_check_reports_a_missing_api_key(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "api-key").unlink()
    assert main(["config", "check", "--config", str(config)]) == 2
    assert "the API key cannot be read" in capsys.readouterr().err


def test_config_check_reports_a_key_file_with_a_placeholder(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "api-key").write_text("YOUR_API_KEY\n")
    assert main(["config", "check", "--config", str(config)]) == 2
    assert "contains a placeholder: write the API key into it" in capsys.readouterr().err


def test_the_example_is_refused_until_it_is_filled_in(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["config", "example"])
    config.write_text(capsys.readouterr().out)
    assert main(["config", "check", "--config", str(config)]) == 2
    assert ":10:1: service.base_url is the address of the example" in capsys.readouterr().err


def test_key_beside_the_configuration_is_used(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in config.read_text().splitlines() if "api_key_file" not in line]
    config.write_text("\n".join(lines))
    assert main(["config", "check", "--config", str(config)]) == 0
    assert capsys.readouterr().out.endswith(": ok\n")


def test_config_show_prints_each_value_with_its_source(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENUE_AGENT_HEARTBEAT__INTERVAL_SECONDS", "7")
    assert main(["config", "show", "--config", str(config)]) == 0
    output = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert 'base_url file "https://ops.venue.test"' in lines
    assert "interval_seconds variable 7.0" in lines
    assert 'delivery default "auto"' in lines
    assert all(len(line) <= 80 for line in output.splitlines() if str(config.parent) not in line)
    assert main(["config", "show", "--json", "--config", str(config)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["heartbeat.interval_seconds"] == {
        "value": 7.0, "from": "VENUE_AGENT_HEARTBEAT__INTERVAL_SECONDS",
    }  # fmt: skip
    assert document["service.location_id"] == {"value": "loc-0001", "from": str(config)}


def test_secrets_are_redacted(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = config.read_text()
    proxy = '[service]\nproxy = "http://me:pass-word@proxy:3128"\n'
    config.write_text(text.replace("[service]\n", proxy))
    for words in (["show"], ["show", "--json"]):
        assert main(["config", *words, "--config", str(config)]) == 0
        output = capsys.readouterr().out
        assert "http://***@proxy:3128" in output
        assert "pass-word" not in output
        assert "a-key" not in output


def test_printers_are_listed_by_their_id(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(config.read_text() + '[[printers]]\nid = "bar"\nname = "Bar"\n')
    assert main(["config", "show", "--json", "--config", str(config)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["printers.bar"]["value"]["name"] == "Bar"


def test_watched_devices_are_listed_by_their_name(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device = '[[watched_devices]]\nname = "Bar no."\naddress = "192.0.2.7"\n'
    config.write_text(config.read_text() + device)
    assert main(["config", "show", "--config", str(config)]) == 0
    assert "Bar no." in capsys.readouterr().out
    assert main(["config", "show", "--json", "--config", str(config)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["watched_devices.Bar no."]["value"]["address"] == "192.0.2.7"


def test_the_schema_accepts_a_valid_and_refuses_an_invalid_configuration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    valid = {"service": {"base_url": "https://x", "location_id": "a"}}
    assert validator.is_valid(valid)
    assert not validator.is_valid({**valid, "commands": {"delivery": "strem"}})
    assert not validator.is_valid({**valid, "netwrok": {}})


def test_config_example_prints_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "example"]) == 0
    assert capsys.readouterr().out.startswith("# Configuration of the venue agent.")


def test_config_check_reports_missing_and_unsafe_files(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = config.read_text()
    (config.parent / "state").write_text("")
    (config.parent / "api-key").chmod(0o644)
    config.write_text(
        text.replace("[service]\n", f'[service]\nca_file = "{config.parent}/none.pem"\n')
    )
    assert main(["config", "check", "--config", str(config)]) == 2
    lines = [line.partition(".toml")[2] for line in capsys.readouterr().err.splitlines()]
    directory = config.parent
    assert lines == [
        f":2:1: service.ca_file {directory}/none.pem: No such file or directory",
        (
            f":5:1: every user of this machine can read the file {directory}/api-key:"
            " run `chmod 600` on it"
        ),
        f":7:1: {directory}/state is not a directory",
    ]
