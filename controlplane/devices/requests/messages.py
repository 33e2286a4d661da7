"""The reply of `onCommands`. The contract does not define it."""

from agent.wire.base import Array, Tolerant
from agent.wire.device_operations import Command


class CommandList(Tolerant):
    """The requests that devices of an API key have not started, oldest first."""

    commands: Array[Command]
