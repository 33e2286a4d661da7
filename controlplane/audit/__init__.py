"""The audit log. An entry is written in the transaction of each change. Owners can read it."""
