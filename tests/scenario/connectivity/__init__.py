"""Real faults in a venue of network namespaces, and what the running agent recorded of them."""
