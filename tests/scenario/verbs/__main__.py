"""`python -m tests.scenario.verbs`: runs cells of the table in docs/cli.md (see `world`)."""

from tests.scenario.verbs.world import main

if __name__ == "__main__":
    main()
