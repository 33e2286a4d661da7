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
