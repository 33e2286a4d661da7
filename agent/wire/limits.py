"""Every limit of the contract (contract: Limits, Resources, Endpoints).

The length of a string is its number of UTF-16 code units.
"""

from typing import Final

# Identifiers and enrollment (remoteControl.challenge, remoteControl.enroll)
PUBLIC_KEY_LENGTH: Final = 88
LOCATION_ID_MAX: Final = 128
LEGACY_INSTALL_ID_MAX: Final = 128
APP_VERSION_MAX: Final = 128
CAPABILITIES_MAX: Final = 32
CAPABILITY_MAX: Final = 128
SIGNATURE_MIN: Final = 8
SIGNATURE_MAX: Final = 128

# Listings (remoteControl.listDevices, remoteControl.deviceDetail)
CURSOR_MAX: Final = 128

# Every integer field
INTEGER_MAX: Final = 9007199254740991
INTEGER_MIN: Final = -INTEGER_MAX

# Report payloads, both versions
PAYLOAD_STRING_MAX: Final = 1024
FAILURES_MAX: Final = 128
LIMITATIONS_MAX: Final = 128
NATIVE_CAPABILITIES_MAX: Final = 128

# Version-2 payload
ENDPOINTS_MAX: Final = 256
PRINTERS_MAX: Final = 64
MATCHED_PRINTER_IDS_MAX: Final = 64
DISCOVERED_BY_MAX: Final = 2
PORT_MIN: Final = 1
PORT_MAX: Final = 65535

# Version-1 payload
BROWSER_FIELDS_MAX: Final = 34
BROWSER_SOURCE_MAX: Final = 256
BROWSER_STRING_MAX: Final = 256
BROWSER_ARRAY_MAX: Final = 32
BROWSER_REASON_MAX: Final = 512
