"""The console's operations for alerts, and for their rules, silences and routes."""
