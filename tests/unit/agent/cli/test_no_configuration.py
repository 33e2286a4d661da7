"""Tests that, without a configuration file, one sentence names the missing path and the command
that creates the file.
"""

import re
from pathlib import Path

import pytest

from agent.cli.main import main
from agent.config import rights as config_rights

SENTENCE = "venue-agent: there is no configuration at "


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the path of the configuration to a file that does not exist, and return it. Also set a
    new state directory, so that the state of an agent on this machine is not read.
    """
    config = tmp_path / "etc/config.toml"
    monkeypatch.setenv("VENUE_AGENT_CONFIG", str(config))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return config


@pytest.mark.parametrize(
    "words",
    [["run"], ["enroll"], ["history"], ["timeline"], ["config", "check"], ["config", "show"]],
)
def test_missing_configuration_is_reported_in_one_sentence(
    words: list[str], config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{SENTENCE}{config}: ")
    assert f"`mkdir -p {config.parent} && venue-agent config example >{config}` creates one" in line


def test_defaults_are_printed_without_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show"]) == 2
    assert re.search(r"max_duration_seconds +default", capsys.readouterr().out)


def test_status_without_a_configuration_does_not_advise_to_start_the_agent(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"]) == 2
    printed = capsys.readouterr().out
    output = " ".join(printed.split())
    assert output.startswith("not running")
    assert "start it" not in output
    assert f"there is no configuration at {config}".replace(" ", "") in "".join(printed.split())


def test_the_message_without_configuration_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VENUE_AGENT_CONFIG")
    monkeypatch.setattr(config_rights, "has_service_manager", lambda: True)
    text = config_rights.no_configuration()
    assert (
        "venue-agent service install --base-url URL --location ID --api-key-file FILE` creates one"
        in text
    )


def test_a_missing_file_given_with_config_has_its_own_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "check", "--config", str(tmp_path / "none.toml")]) == 2
    error = f"venue-agent: {tmp_path}/none.toml: the file does not exist\n"
    assert capsys.readouterr().err == error


def test_status_advises_to_correct_a_broken_configuration_first(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.parent.mkdir()
    config.write_text("[service\n")
    assert main(["status"]) == 2
    printed = capsys.readouterr().out
    output = " ".join(printed.split())
    assert "start it" not in output
    assert "correct the configuration first: `venue-agent config check`" in output
