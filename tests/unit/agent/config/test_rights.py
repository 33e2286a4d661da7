"""Tests that commands in advice contain the `--config` of the user, so that they can be copied."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.main import main
from agent.config.rights import name_configuration, with_config
from tests.unit.agent.cli.running_state import PROBLEM, running_daemon, write_config


@pytest.fixture(autouse=True)
def _configuration() -> Iterator[None]:
    name_configuration(Path("/srv/till 1/agent.toml"))
    yield
    name_configuration(None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "run `venue-agent doctor` for the reason",
            "run `venue-agent doctor --config '/srv/till 1/agent.toml'` for the reason",
        ),
        (
            "as root: `sudo venue-agent enroll --force`, then start it",
            (
                "as root: `sudo venue-agent enroll --force --config '/srv/till 1/agent.toml'`, then"
                " start it"
            ),
        ),
        (
            "`venue-agent upgrade check`",
            "`venue-agent upgrade check --config '/srv/till 1/agent.toml'`",
        ),
        # None: the text is unchanged.
        ("`venue-agent config check --config F`", None),
        ("`venue-agent config example`", None),
        ("`venue-agent service start`", None),
        ("venue-agent doctor", None),
    ],
)
def test_commands_with_the_option_config_get_the_path_of_the_configuration(
    text: str, expected: str | None
) -> None:
    assert with_config(text) == (text if expected is None else expected)


def test_advice_is_unchanged_without_the_option_config() -> None:
    name_configuration(None)
    assert with_config("run `venue-agent doctor`") == "run `venue-agent doctor`"


def test_advice_of_a_verb_contains_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    problem = PROBLEM.model_copy(update={"fix": "run `venue-agent collect` here to see why"})
    with running_daemon(tmp_path, problems=(problem,)):
        main(["status", "--config", str(config)])
    # The terminal breaks lines between words, and within a path that is longer than a line.
    output = "".join(capsys.readouterr().out.split())
    assert f"→run`venue-agentcollect--config{config}`heretoseewhy" in output
    assert main(["history", "deadbeef", "--config", str(config)]) == 1
    assert f"see `venue-agent history --config {config}`" in capsys.readouterr().err
