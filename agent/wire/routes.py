"""The path of each remoteControl operation, below the service's base address."""

from typing import Final

PREFIX: Final = "/api/public/v1/remoteControl/"

CHALLENGE: Final = PREFIX + "challenge"
ENROLL: Final = PREFIX + "enroll"
CURRENT: Final = PREFIX + "current"
HEARTBEAT: Final = PREFIX + "heartbeat"
ACKNOWLEDGE: Final = PREFIX + "acknowledge"
SUBMIT_RESULT: Final = PREFIX + "submitResult"
ON_COMMANDS: Final = PREFIX + "onCommands"
CREATE_REQUEST: Final = PREFIX + "createRequest"
LIST_DEVICES: Final = PREFIX + "listDevices"
DEVICE_DETAIL: Final = PREFIX + "deviceDetail"
REPORT_DETAIL: Final = PREFIX + "reportDetail"
REVOKE: Final = PREFIX + "revoke"
