"""Runs cells of the table in docs/cli.md. `isolated_machine` describes input and output."""

from tests.scenario.verbs.isolated_machine import main

if __name__ == "__main__":
    main()
