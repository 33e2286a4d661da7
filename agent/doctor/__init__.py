"""Finds problems of this machine's agent: runs checks in parallel, and finds the root causes."""
