"""Tests that a running agent records real faults in a venue of network namespaces."""
