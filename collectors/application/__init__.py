"""Collects the application snapshot: facts about this machine and its kiosk browser.

Each source declares its keys and runs independently. If a source hangs or fails, only its own
fields are missing. docs/application-fields.md lists every key with its type and unit.
"""
