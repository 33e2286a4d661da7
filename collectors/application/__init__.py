"""The application snapshot: the facts that a technician needs first, and the kiosk's browser.

Each source declares its keys and runs on its own: one that hangs or fails costs only its own
fields. docs/application-fields.md lists every key with its type and unit.
"""
