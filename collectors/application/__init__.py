"""The application snapshot: the first facts that a technician needs, and the browser of the kiosk.

Each source declares its keys and runs on its own: one that hangs or fails costs only its own
fields. docs/application-fields.md lists every key with its type and unit.
"""
