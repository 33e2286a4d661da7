"""The audit log. An entry is written in the same transaction as the change. Owners can read
the log.
"""
