"""Tests that both programs have `--version` for every command, and suggest corrections of mistyped
words.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import __version__
from agent.cli import main as agent_main
from agent.presentation.command_line import did_you_mean
from controlplane.cli import main as control_main
from tests.unit.agent.cli.running_state import write_config

Main = Callable[[Sequence[str]], int]
AGENT, CONTROL = agent_main.main, control_main.main

VERBS = [(AGENT, "venue-agent", verb) for verb in ("", *agent_main.VERBS)] + [
    (AGENT, "venue-agent", "config show"),
    (AGENT, "venue-agent", "service install"),
    *(
        (CONTROL, "venue-control", verb)
        for verb in ("", "serve", "keys create", "devices", "device", "request", "report", "demo")
    ),
]


@pytest.mark.parametrize(("main", "name", "verb"), VERBS)
def test_every_verb_shows_the_version(
    main: Main, name: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([*verb.split(), "--version"])
    assert exit_info.value.code == 0
    assert capsys.readouterr().out == f"{name} {__version__}\n"


@pytest.mark.parametrize(
    ("main", "words", "suggestion"),
    [
        (AGENT, "statsu", "status"),
        (AGENT, "collect netwrok", "network"),
        (AGENT, "config chek", "check"),
        (AGENT, "service instal", "install"),
        (AGENT, "status --jsn", "--json"),
        (AGENT, "doctor --bundel=x.zip", "--bundle"),
        (AGENT, "config show --jsn", "--json"),
        (AGENT, "--debgu status", "--debug"),
        (CONTROL, "demos", "demo"),
        (CONTROL, "keys creat", "create"),
        (CONTROL, "report 1 --htm", None),  # accepted as --html, but its value is missing
        (CONTROL, "devices --jsno", "--json"),
        (AGENT, "frobnicate", None),
        (AGENT, "status --xyzzy", None),
    ],
)
def test_a_mistyped_word_gets_a_suggestion(
    main: Main, words: str, suggestion: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(words.split())
    assert exit_info.value.code == 2
    errors = capsys.readouterr().err
    assert ("did you mean" in errors) is (suggestion is not None)
    if suggestion is not None:
        assert errors.endswith(f"; did you mean {suggestion!r}?\n")


@pytest.mark.parametrize(
    "words",
    [
        "--config {} status --json",
        "--config={} status --json",
        "--json status --config {}",
        "--json --config {} status",
        "status --json --config {}",
        "--config {} config check --json",
        "config --config {} check --json",
    ],
)
def test_options_are_accepted_before_and_after_the_verb(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    AGENT(words.format(config).split())
    captured = capsys.readouterr()
    assert captured.err == ""
    assert isinstance(json.loads(captured.out), dict)


@pytest.mark.parametrize("words", [[], ["--config", "agent.toml"]])
def test_agent_without_a_verb_prints_its_help(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        AGENT(words)
    assert exit_info.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith("usage: venue-agent VERB [OPTIONS]\n")
    assert all(f"    {verb} " in errors for verb in agent_main.VERBS)
    assert max(map(len, errors.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("frobnicate", "'frobnicate' is not a valid VERB: choose from run, enroll, "),
        ("collect printers", "'printers' is not a valid kind: choose from network, application\n"),
        ("collect", "kind is missing: see --help\n"),
        ("check", "PRINTER is missing: see --help\n"),
        ("status --config", "--config needs a value\n"),
    ],
)
def test_a_usage_error_names_the_wrong_or_missing_argument(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        AGENT(words.split())
    assert f"error: {message}" in capsys.readouterr().err


def test_a_mistyped_option_is_reported_with_the_usage_of_its_verb(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        AGENT(["history", "--limti", "3"])
    assert capsys.readouterr().err.startswith("usage: venue-agent history ")


@pytest.mark.parametrize("known", ["'run', 'status'", "run, status"])
def test_a_verb_is_suggested_from_the_argparse_error_of_each_python_version(known: str) -> None:
    message = f"argument VERB: invalid choice: 'statsu' (choose from {known})"
    assert did_you_mean(message, "") == "; did you mean 'status'?"


OPTIONS = st.from_regex(r"--\w[\w-]*", fullmatch=True)


@given(st.text() | OPTIONS, st.lists(OPTIONS))
def test_only_valid_words_are_suggested(words: str, options: list[str]) -> None:
    help_text = "".join(f"  [{option} VALUE], {option}: see {option}=1\n" for option in options)
    choice = f"invalid choice: {words!r} (choose from 'run', 'status')"
    for message in (f"unrecognized arguments: {words}", choice):
        suggestion = did_you_mean(message, help_text)
        valid_words = (*options, "run", "status")
        assert suggestion in {"", *(f"; did you mean {word!r}?" for word in valid_words)}
