"""The state directory of the agent on this machine, also where the configuration is wrong.

Root goes on as its owner: the configuration is read before.
"""

import sys
from pathlib import Path

from agent.adapters.privileges import step_down
from agent.adapters.state import StateDirectory
from agent.config import LocalConfig, state_dir
from agent.config_file import guessed_state_dir, load
from agent.errors import ConfigError


def state_here(config: Path | None) -> StateDirectory:
    """Return it, as its owner. Raises StateError where others could change what is in it."""
    state = _named_by(config)
    step_down(state.path)
    state.require_closed()
    return state


def _named_by(config: Path | None) -> StateDirectory:
    """Return it. A wrong configuration is told on stderr: what the agent does is still asked."""
    try:
        return StateDirectory(state_dir(load(LocalConfig, config).config.device))
    except ConfigError as error:
        if config is not None and not config.exists():
            raise
        for problem in error.problems:
            sys.stderr.write(f"venue-agent: {problem}\n")
    return StateDirectory(guessed_state_dir(config))
