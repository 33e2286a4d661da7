"""Builds the man page and the shell completion from the argument parsers of the command line.

Usage: python packaging/manual.py man|bash [venue-agent|venue-control] > FILE
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent import __version__


@dataclass(frozen=True, slots=True)
class Option:
    """An option or argument.

    ``flags`` is empty for a positional argument. ``value`` is the placeholder of the value, such as
    FILE, and empty for an option without a value. ``text`` is the help text.
    """

    flags: tuple[str, ...]
    value: str
    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the program. ``words`` are the verb and its actions, such as `keys create`."""

    words: tuple[str, ...]
    text: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Manual:
    """The content of a program's manual page.

    ``examples`` contains pairs of text and command. ``environment`` and ``files`` contain pairs of
    name and text.
    """

    program: str
    summary: str
    commands: Callable[[], Iterator[Command]]
    examples: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    see_also: tuple[str, ...]


def service_commands() -> Iterator[Command]:
    """Yield every command of venue-control, which has one parser for all commands."""
    from controlplane.cli.main import build_parser  # part of the service's package only

    yield from _commands((), "", build_parser())


def commands() -> Iterator[Command]:
    """Yield every command of venue-agent."""
    from agent.cli.main import VERBS  # part of the agent's package only

    for verb, text in VERBS.items():
        parser = argparse.ArgumentParser(prog=verb, add_help=False)
        importlib.import_module(f"agent.cli.{verb}").add_arguments(parser)
        yield from _commands((verb,), text, parser)


def _commands(
    words: tuple[str, ...], text: str, parser: argparse.ArgumentParser
) -> Iterator[Command]:
    options = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public method
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            for name, sub in action.choices.items():
                yield from _commands((*words, name), summaries.get(name, ""), sub)
            return
        if not isinstance(action, argparse._HelpAction | argparse._VersionAction):  # noqa: SLF001
            options.append(_option(action))
    yield Command(words, text, tuple(options))


def _option(action: argparse.Action) -> Option:
    choices = tuple(str(choice) for choice in action.choices or ())
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    value = "" if action.nargs == 0 else "|".join(choices) or name
    text = (action.help or "").replace("%(default)s", str(action.default))
    return Option(tuple(action.option_strings), value, text, choices)


_EXAMPLES = (
    ("Find out why a printer does not print.", "venue-agent check kitchen"),
    ("Find problems with printers and the network. This needs no root rights.",
     "venue-agent collect network"),
    ("Write this report as an HTML page.", "venue-agent collect network --html report.html"),
    ("Pass the payload of an application report to another program.",
     "venue-agent collect application --json | jq .completeness"),
    ("Check the configuration, and install the agent as a service.",
     "venue-agent config check && venue-agent service install"),
    ("Show what the agent does, what is wrong, and how to fix it.", "sudo venue-agent status"),
    ("Write a file with everything that support needs, without secrets.",
     "sudo venue-agent doctor --bundle case.zip"),
)  # fmt: skip

_ENVIRONMENT = (
    ("VENUE_AGENT_<SECTION>__<KEY>",
     "overrides a key of the configuration: VENUE_AGENT_HEARTBEAT__INTERVAL_SECONDS=30"),
    ("VENUE_AGENT_CONFIG", "the configuration, if --config is not used"),
    ("VENUE_AGENT_API_KEY", "the API key, if neither a file nor a systemd credential contains it"),
    ("HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "the proxy, if service.proxy is not set"),
    ("CUPS_SERVER", "the address of the print spooler"),
    ("NO_COLOR", "if set, nothing is coloured"),
)  # fmt: skip

_FILES = (
    ("/etc/venue-agent/config.toml", "the configuration; the service does not start without it"),
    ("/etc/venue-agent/api-key",
     "the API key, readable by root only; systemd passes it to the service"),
    ("/var/lib/venue-agent", "identity, journal and reports that wait to be sent"),
    ("/usr/lib/venue-agent.previous", "the version that runs again if an upgrade fails"),
    ("/usr/share/doc/venue-agent", "documents about installation, troubleshooting and privacy"),
)  # fmt: skip

_SERVICE_EXAMPLES = (
    ("Create the organization, its owner, a location and the first key. Asks for each value.",
     "sudo venue-control setup"),
    ("Create a key. It is printed once and stored as a hash.",
     "sudo venue-control keys create --write --name operators"),
    ("Show the state of the service and its log.",
     "venue-control service status; journalctl -u venue-control -n 50"),
    ("Create a key of the retail API for a program that reads sales.",
     "sudo venue-control retail keys create --live --name accounting"),
    ("Set the contact details of support, and create a token that links a chat with a merchant.",
     ("sudo venue-control support channels set telegram @venue --hours 'Mon-Fri 9-18';"
      " sudo venue-control support link --channel 'telegram @venue' --asked-by Ada")),
    ("Copy the database while the service runs.", "sudo venue-control backup /root/venue.db"),
    ("Move from SQLite to PostgreSQL while the service is stopped.",
     ("sudo -u venue-control venue-control database copy /var/lib/venue-control/venue-control.db"
      " 'postgresql+psycopg:///venue?host=/var/run/postgresql'")),
)  # fmt: skip

_SERVICE_ENVIRONMENT = (
    ("VENUE_CONTROL_DATABASE", "the database, if --database is not used"),
    ("VENUE_CONTROL_URL", "the address of the service, if --base-url is not used"),
    ("VENUE_CONTROL_API_KEY", "the API key, if --api-key-file is not used"),
    ("VENUE_CONTROL_RETAIL_KEY", "the retail API key, if --retail-key-file is not used"),
    ("NO_COLOR", "if set, nothing is coloured"),
)

_SERVICE_FILES = (
    ("/etc/venue-control/serve.conf", "the options of the service, one on each line"),
    ("/var/lib/venue-control", "the SQLite database, unless another database is selected"),
    ("/usr/share/doc/venue-control", "installation guide, and examples for nginx and Caddy"),
)

_EXIT_STATUS = (
    ("0", "success; the checked object is healthy"),
    ("1", "the checked object has a problem, or an error occurred"),
    ("2", "wrong usage, or an invalid or missing configuration"),
    ("3", "this user lacks a permission: use sudo"),
)


MANUALS = {
    manual.program: manual
    for manual in (
        Manual(
            program="venue-agent",
            summary="remote control and diagnostics agent of a venue's machine",
            commands=commands,
            examples=_EXAMPLES,
            environment=_ENVIRONMENT,
            files=_FILES,
            see_also=(".BR systemctl (1),", ".BR journalctl (1)"),
        ),
        Manual(
            program="venue-control",
            summary="the service that venue agents report to",
            commands=service_commands,
            examples=_SERVICE_EXAMPLES,
            environment=_SERVICE_ENVIRONMENT,
            files=_SERVICE_FILES,
            see_also=(".BR systemctl (1),", ".BR journalctl (1),", ".BR venue-agent (1)"),
        ),
    )
}


def man_page(program: str = "venue-agent") -> str:
    """Return the manual page in man(7) macros."""
    manual = MANUALS[program]
    lines = [
        f'.TH {program.upper()} 1 "" "{program} {__version__}" "User commands"',
        ".SH NAME",
        f"{program} \\- {manual.summary}",
        ".SH SYNOPSIS",
        f".B {program}",
        "[\\fB\\-\\-debug\\fR] \\fIVERB\\fR [\\fIOPTIONS\\fR]",
        ".SH VERBS",
    ]
    for command in manual.commands():
        lines += [".TP", f".B {_roff(' '.join(command.words))}", _roff(_sentence(command.text))]
        for option in command.options:
            flags = ", ".join(option.flags)
            name = f"\\fB{_roff(flags)}\\fR \\fI{_roff(option.value)}\\fR".strip()
            lines += [".RS", ".TP", name, _roff(_sentence(option.text)), ".RE"]
    lines += [*_closing_sections(manual), ""]
    return "\n".join(lines)


def _closing_sections(manual: Manual) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for text, command in manual.examples:
        yield from (".PP", _roff(text), ".PP", ".RS 4", ".EX", _roff(command), ".EE", ".RE")
    for heading, entries in (
        ("ENVIRONMENT", manual.environment),
        ("FILES", manual.files),
        ("EXIT STATUS", _EXIT_STATUS),
    ):
        yield f".SH {heading}"
        for name, text in entries:
            yield from (".TP", f".B {_roff(name)}", _roff(_sentence(text)))
    yield from (".SH SEE ALSO", *manual.see_also)


def bash_completion(program: str = "venue-agent") -> str:
    """Return a completion script for bash."""
    all_commands = tuple(MANUALS[program].commands())
    verbs = " ".join(dict.fromkeys(command.words[0] for command in all_commands))
    function = f"_{program.replace('-', '_')}"
    lines = [
        f"# bash completion of {program}",
        f"{function}() {{",
        '    local current="${COMP_WORDS[COMP_CWORD]}" words',
        '    case "${COMP_WORDS[COMP_CWORD-1]}" in',
        "        --config|--html|--bundle|--*-file|--dir|--out|backup|restore)",
        '            COMPREPLY=($(compgen -f -- "$current")); return ;;',
        "    esac",
        '    case "${COMP_WORDS[*]:1:COMP_CWORD-1}" in',
    ]
    for command in sorted(all_commands, key=lambda each: len(each.words), reverse=True):
        flags = [flag for option in command.options for flag in option.flags]
        choices = [c for option in command.options if not option.flags for c in option.choices]
        lines.append(
            f'        "{" ".join(command.words)}"*) words="{" ".join(choices + flags)}" ;;'
        )
    groups: dict[str, list[str]] = {}
    for command in all_commands:
        if len(command.words) > 1:
            groups.setdefault(command.words[0], []).append(command.words[1])
    for verb, actions in groups.items():
        lines.append(f'        "{verb}"*) words="{" ".join(actions)}" ;;')
    lines += [
        f'        *) words="{verbs} --version --help --debug" ;;',
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        f"complete -F {function} {program}",
        "",
    ]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped


if __name__ == "__main__":
    make = man_page if sys.argv[1] == "man" else bash_completion
    sys.stdout.write(make(*sys.argv[2:3]))
