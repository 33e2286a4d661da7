"""How a verb is added: its words, what runs it, and examples below its options."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001


def add_verb(
    verbs: "Subparsers", name: str, path: str, text: str, *examples: str
) -> argparse.ArgumentParser:
    """``path`` is module:function below ``controlplane.cli``; ``examples`` are whole lines."""
    epilog = "\n".join(("examples:", *(f"  {each}" for each in examples))) if examples else None
    parser = verbs.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(verb=path)
    return parser


def take_words_between(parser: argparse.ArgumentParser) -> None:
    """Let options stand between words of which there may be several: ``A --wait B network``.

    argparse can, but only for who calls it by another name, which its own subparsers do not.
    """
    once = partial(argparse.ArgumentParser.parse_known_args, parser)

    def parse(
        args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        # It calls back twice, first for the options, which leaves the words over.
        parser.parse_known_args = once  # type: ignore[method-assign, assignment]
        try:
            options, unknown = parser.parse_known_intermixed_args(args, namespace)
        finally:
            parser.parse_known_args = parse  # type: ignore[method-assign, assignment]
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    parser.parse_known_args = parse  # type: ignore[method-assign, assignment]
