"""`venue-agent upgrade`: what an upgrade would do now."""

from agent.cli.upgrade.check import add_arguments, run

__all__ = ["add_arguments", "run"]
