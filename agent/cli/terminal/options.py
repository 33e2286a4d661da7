"""Options that several verbs have."""

import argparse
from pathlib import Path


def add_config_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``."""
    parser.add_argument(
        "--config", type=Path, metavar="F", help="configuration file (TOML); see `config show`"
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_config_and_json_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--config`` and ``--json``."""
    add_config_option(parser)
    add_json_option(parser)


def parse_count(text: str, unit: str, maximum: int = 999_999_999) -> int:
    """Parse a whole number from 1 to ``maximum``. Raises argparse.ArgumentTypeError."""
    # Ten digits are enough to exceed `maximum`. int() refuses texts of thousands of digits.
    count = int(text[:10]) if text.isascii() and text.isdigit() else 0
    if not 1 <= count <= maximum:
        message = f"{text!r} is not a number of {unit} from 1 to {maximum:,}"
        raise argparse.ArgumentTypeError(message)
    return count
