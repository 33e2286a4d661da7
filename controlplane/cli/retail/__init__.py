"""The commands of the retail API: its keys, sales and catalog."""
