"""`python -m tests.scenario.verbs`: runs the cells of the table (see `world`)."""

from tests.scenario.verbs.world import main

if __name__ == "__main__":
    main()
