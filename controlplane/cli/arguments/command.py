"""Commands and their arguments as data, and the argparse parser that is built from them."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent import __version__
from agent.presentation.command_line import UNKNOWN, SuggestingParser

COMMENT: Final = "#"


@dataclass(frozen=True, slots=True)
class Argument:
    """An option or a positional argument. ``keywords`` are passed to `add_argument`."""

    names: tuple[str, ...]
    keywords: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of arguments.

    With a title, the arguments are under this heading in the help text. Without a title, they are
    mutually exclusive.
    """

    arguments: tuple[Argument, ...]
    title: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Args:
        words: What a user types after the program's name.
        function: ``module:function`` below `controlplane.cli`, imported when the command is run.
        is_intermixed: Options are accepted between positional arguments.
        reads_files: An argument ``@FILE`` is replaced with the arguments in that file.
    """

    words: str
    function: str
    summary: str
    arguments: tuple[Argument | Group, ...] = ()
    examples: tuple[str, ...] = ()
    is_intermixed: bool = False
    reads_files: bool = False


def flag(name: str, text: str, **keywords: Any) -> Argument:
    return Argument((name,), {"action": "store_true", "help": text, **keywords})


def option(
    name: str, metavar: str | tuple[str, ...] | None, text: str, **keywords: Any
) -> Argument:
    """Return an option that takes a value. Its help text ends with the default value, if any."""
    if keywords.get("default") and "default:" not in text:
        text += " (default: %(default)s)"
    return Argument((name,), {"metavar": metavar, "help": text, **keywords})


def repeated(name: str, metavar: str | None, text: str, **keywords: Any) -> Argument:
    return option(name, metavar, text, action="append", **{"default": [], **keywords})


def positional(name: str, text: str, **keywords: Any) -> Argument:
    return Argument((name,), {"help": text, **keywords})


def one_of(*arguments: Argument, is_required: bool = False) -> Group:
    return Group(arguments, is_required=is_required)


class Parser(SuggestingParser):
    """The parser of the program or of one of its commands."""

    version = f"venue-control {__version__}"
    is_intermixed = False
    _is_parsing = False

    def convert_arg_line_to_args(self, arg_line: str) -> list[str]:
        """Split a line of an options file into an option and its value."""
        text = arg_line.strip()
        return [] if text.startswith(COMMENT) else text.split(None, 1)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._is_parsing:  # parse_known_intermixed_args calls this method again
            return argparse.ArgumentParser.parse_known_args(self, args, namespace)
        if not self.is_intermixed:
            return super().parse_known_args(args, namespace)
        self._is_parsing = True
        try:
            options, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_parsing = False
        if unknown:
            self.error(f"{UNKNOWN}{' '.join(unknown)}")
        return options, unknown


def add_commands(
    parser: argparse.ArgumentParser, groups: Mapping[str, str], commands: Iterable[Command]
) -> None:
    """Add the commands to the program's parser.

    Args:
        groups: The help text of each word that has subcommands, such as ``keys``.
    """
    subparsers = {"": parser.add_subparsers(required=True, metavar="COMMAND")}
    for command in commands:
        words = command.words.split()
        for depth in range(1, len(words)):
            name, parent = " ".join(words[:depth]), " ".join(words[: depth - 1])
            if name not in subparsers:
                text = groups[name]
                group = subparsers[parent].add_parser(
                    words[depth - 1], help=text, description=_sentence(text)
                )
                subparsers[name] = group.add_subparsers(required=True, metavar="ACTION")
        _add_command(subparsers[" ".join(words[:-1])], words[-1], command)


def _add_command(subparsers: Any, name: str, command: Command) -> None:
    parser: Parser = subparsers.add_parser(
        name,
        help=command.summary,
        description=_sentence(command.summary),
        epilog="\n  ".join(("examples:", *command.examples)) if command.examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars="@" if command.reads_files else None,
    )
    parser.is_intermixed = command.is_intermixed
    parser.set_defaults(function=command.function)
    for part in command.arguments:
        container: argparse._ActionsContainer = parser
        if isinstance(part, Group) and part.title:
            container = parser.add_argument_group(part.title)
        elif isinstance(part, Group):
            container = parser.add_mutually_exclusive_group(required=part.is_required)
        for argument in part.arguments if isinstance(part, Group) else (part,):
            container.add_argument(*argument.names, **argument.keywords)


def _sentence(summary: str) -> str:
    return summary[0].upper() + summary[1:] + "."
