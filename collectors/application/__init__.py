"""The application snapshot: what a technician looks at first, and the kiosk's own browser.

Each source declares the keys it owes and runs on its own: one that hangs or breaks costs only
its own fields. docs/application-fields.md lists every key with its type and unit.
"""
