"""What this build with its configuration can do, in the service's words."""

from agent.config.model import LocalConfig


def capabilities_of(config: LocalConfig) -> tuple[str, ...]:
    """Return what this build with this configuration can do, in the service's words."""
    able = {
        "network": config.network.enabled,
        "application": config.application.enabled,
        "commands.stream": config.commands.delivery != "poll",
        "commands.poll": config.commands.delivery != "stream",
    }
    return tuple(name for name, is_able in able.items() if is_able)
