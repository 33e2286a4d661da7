"""Which printer of the machine is which device of the network. Pure."""
