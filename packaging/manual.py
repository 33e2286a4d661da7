"""The man page and the shell completion, made from what the command line itself takes.

Usage: python packaging/manual.py man|bash > FILE
"""

import argparse
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from agent import __version__
from agent.cli.main import VERBS


@dataclass(frozen=True, slots=True)
class Option:
    """``flags`` is empty for a word that stands without one; ``choices`` are its values."""

    flags: tuple[str, ...]
    value: str
    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]
    text: str
    options: tuple[Option, ...]


def commands() -> Iterator[Command]:
    """Yield every verb, and the actions of those that have some."""
    for verb, text in VERBS.items():
        parser = argparse.ArgumentParser(prog=verb, add_help=False)
        importlib.import_module(f"agent.cli.{verb}").add_arguments(parser)
        yield from _commands((verb,), text, parser)


def _commands(
    words: tuple[str, ...], text: str, parser: argparse.ArgumentParser
) -> Iterator[Command]:
    options = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            for name, sub in action.choices.items():
                yield from _commands((*words, name), summaries.get(name, ""), sub)
            return
        if not isinstance(action, argparse._HelpAction):  # noqa: SLF001
            options.append(_option(action))
    yield Command(words, text, tuple(options))


def _option(action: argparse.Action) -> Option:
    choices = tuple(str(choice) for choice in action.choices or ())
    named = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    value = "" if action.nargs == 0 else "|".join(choices) or named
    return Option(tuple(action.option_strings), value, action.help or "", choices)


def man_page() -> str:
    """Return the page in man(7) macros."""
    lines = [
        f'.TH VENUE-AGENT 1 "" "venue-agent {__version__}" "User commands"',
        ".SH NAME",
        "venue-agent \\- remote control and diagnostics agent of a venue's machine",
        ".SH SYNOPSIS",
        ".B venue-agent",
        "[\\fB\\-\\-debug\\fR] \\fIVERB\\fR [\\fIOPTIONS\\fR]",
        ".SH VERBS",
    ]
    for command in commands():
        lines += [".TP", f".B {_roff(' '.join(command.words))}", _roff(_sentence(command.text))]
        for option in command.options:
            flags = ", ".join(option.flags)
            name = f"\\fB{_roff(flags)}\\fR \\fI{_roff(option.value)}\\fR".strip()
            lines += [".RS", ".TP", name, _roff(_sentence(option.text)), ".RE"]
    lines += [*_closing_sections(), ""]
    return "\n".join(lines)


_EXAMPLES = (
    ("What is wrong with the printers here? No service, no configuration and no root are needed.",
     "venue-agent collect network"),
    ("The same as a page to send on.", "venue-agent collect network --html report.html"),
    ("The exact payload of an application report, for a script.",
     "venue-agent collect application --json | jq .completeness"),
    ("Set the service up on this machine.",
     "venue-agent config check && venue-agent service install"),
    ("What the service is doing, what is wrong, and how to mend it.", "sudo venue-agent status"),
    ("Everything that support needs, without a secret in it.",
     "sudo venue-agent doctor --bundle case.zip"),
)  # fmt: skip

_ENVIRONMENT = (
    ("VENUE_AGENT_<SECTION>__<KEY>",
     "overrides a key of the configuration: VENUE_AGENT_HEARTBEAT__INTERVAL_SECONDS=30"),
    ("VENUE_AGENT_CONFIG", "the configuration, where --config names none"),
    ("VENUE_AGENT_API_KEY", "the API key, where neither a file nor a systemd credential has it"),
    ("HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "the way to the service, where service.proxy is not set"),
    ("CUPS_SERVER", "where the print spooler of this machine listens"),
    ("NO_COLOR", "if set, nothing is coloured"),
)  # fmt: skip

_FILES = (
    ("/etc/venue-agent/config.toml", "the configuration; the service does not start without it"),
    ("/etc/venue-agent/api-key",
     "the API key, readable by root only; systemd hands it to the service"),
    ("/var/lib/venue-agent", "identity, journal and reports that wait to be sent"),
    ("/usr/share/doc/venue-agent", "installation, troubleshooting, privacy, the sandbox"),
)  # fmt: skip

_EXIT_STATUS = (
    ("0", "done"),
    ("1", "the thing asked about is bad"),
    ("2", "usage or configuration error"),
    ("3", "not visible to this user: use sudo"),
)


def _closing_sections() -> Iterator[str]:
    yield ".SH EXAMPLES"
    for text, command in _EXAMPLES:
        yield from (".PP", _roff(text), ".PP", ".RS 4", ".EX", _roff(command), ".EE", ".RE")
    for heading, entries in (
        ("ENVIRONMENT", _ENVIRONMENT),
        ("FILES", _FILES),
        ("EXIT STATUS", _EXIT_STATUS),
    ):
        yield f".SH {heading}"
        for name, text in entries:
            yield from (".TP", f".B {_roff(name)}", _roff(_sentence(text)))
    yield from (".SH SEE ALSO", ".BR systemctl (1),", ".BR journalctl (1)")


def bash_completion() -> str:
    """Return a completion script for bash."""
    known = tuple(commands())
    lines = [
        "# bash completion of venue-agent",
        "_venue_agent() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" words',
        '    case "${COMP_WORDS[COMP_CWORD-1]}" in',
        "        --config|--html|--bundle|--api-key-file)",
        '            COMPREPLY=($(compgen -f -- "$current")); return ;;',
        "    esac",
        '    case "${COMP_WORDS[*]:1:COMP_CWORD-1}" in',
    ]
    for command in sorted(known, key=lambda each: len(each.words), reverse=True):
        flags = [flag for option in command.options for flag in option.flags]
        choices = [c for option in command.options if not option.flags for c in option.choices]
        lines.append(
            f'        "{" ".join(command.words)}"*) words="{" ".join(choices + flags)}" ;;'
        )
    groups: dict[str, list[str]] = {}
    for command in known:
        if len(command.words) > 1:
            groups.setdefault(command.words[0], []).append(command.words[1])
    for verb, actions in groups.items():
        lines.append(f'        "{verb}"*) words="{" ".join(actions)}" ;;')
    lines += [
        f'        *) words="{" ".join(VERBS)} --version --help --debug" ;;',
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -F _venue_agent venue-agent",
        "",
    ]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped


if __name__ == "__main__":
    sys.stdout.write(man_page() if sys.argv[1:] == ["man"] else bash_completion())
