"""Finds the state directory of the agent on this machine, even if the configuration is invalid.

A process of root continues as the owner of this directory, once it has read the configuration.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from agent.adapters.accounts.privileges import step_down
from agent.adapters.storage.state import StateDirectory
from agent.adapters.storage.visibility import is_closed, require_visible
from agent.config.file import guessed_state_dir, load
from agent.config.model import LocalConfig
from agent.errors import ConfigError, ConfigMissing, ConfigNotVisible


@dataclass(frozen=True, slots=True)
class ResolvedState:
    """A state directory.

    If an error in the configuration makes the directory a guess, ``guessed_because`` is this error.
    Otherwise it is None. ``config`` is None if the configuration cannot be read or is invalid.
    """

    state: StateDirectory
    guessed_because: ConfigError | None = None
    config: LocalConfig | None = None

    @property
    def is_closed(self) -> bool:
        """Whether this user is not permitted to see the agent's state."""
        return isinstance(self.guessed_because, ConfigNotVisible) or is_closed(self.state.path)

    def require_visible(self) -> None:
        """Raise NotVisible if this user is not permitted to see the agent's state."""
        if isinstance(self.guessed_because, ConfigNotVisible):
            raise self.guessed_because
        require_visible(self.state.path)


def resolve_state(config: Path | None) -> ResolvedState:
    """Return the state directory. A process of root continues as the directory's owner.

    Raises:
        ConfigError: The file ``config`` does not exist.
        StateError: Other users could change the directory's content.
    """
    resolved = _configured_state(config)
    if not resolved.is_closed:
        step_down(resolved.state.path)
        resolved.state.require_protected()
    return resolved


def _configured_state(config: Path | None) -> ResolvedState:
    """Return the state directory of a configuration, or a guess if the configuration is invalid.

    The problems of an invalid configuration are printed on stderr.
    """
    try:
        loaded = load(LocalConfig, config)
    except ConfigError as error:
        if config is not None and not isinstance(error, ConfigNotVisible) and not config.exists():
            raise
        if not isinstance(error, ConfigNotVisible):
            for problem in error.problems:
                sys.stderr.write(f"venue-agent: {problem}\n")
        return ResolvedState(StateDirectory(guessed_state_dir(config)), error)
    state = StateDirectory(loaded.state_dir)
    if loaded.path is None and loaded.config.service is None:
        from agent.config.rights import no_configuration  # rarely needed

        return ResolvedState(state, ConfigMissing((no_configuration(),)), loaded.config)
    return ResolvedState(state, config=loaded.config)
