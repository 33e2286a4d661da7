"""Both programs have `--version` for every command, and suggest corrections of mistyped words."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import __version__
from agent.cli import main as agent_main
from agent.presentation.command_line import did_you_mean
from controlplane.cli import main as control_main

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
    with pytest.raises(SystemExit) as ended:
        main([*verb.split(), "--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"{name} {__version__}\n"


@pytest.mark.parametrize(
    ("main", "words", "meant"),
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
        (CONTROL, "report 1 --htm", None),  # an abbreviation that matches one option is accepted
        (CONTROL, "devices --jsno", "--json"),
        (AGENT, "frobnicate", None),
        (AGENT, "status --xyzzy", None),
    ],
)
def test_a_mistyped_word_gets_a_suggestion(
    main: Main, words: str, meant: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert ("did you mean" in errors) is (meant is not None)
    if meant is not None:
        assert errors.endswith(f"; did you mean {meant!r}?\n")


def test_a_verbs_mistake_is_reported_with_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        AGENT(["history", "--limti", "3"])
    assert capsys.readouterr().err.startswith("usage: venue-agent history ")


@pytest.mark.parametrize("known", ["'run', 'status'", "run, status"])
def test_a_verb_is_suggested_from_the_argparse_error_of_each_python_version(known: str) -> None:
    message = f"argument VERB: invalid choice: 'statsu' (choose from {known})"
    assert did_you_mean(message, "") == "; did you mean 'status'?"


@given(st.text(), st.text())
def test_suggestions_only_contain_known_words(words: str, help_text: str) -> None:
    choice = f"invalid choice: {words!r} (choose from 'run', 'status')"
    for message in (f"unrecognized arguments: {words}", choice):
        summary = did_you_mean(message, help_text)
        assert not summary or summary.startswith("; did you mean '")
