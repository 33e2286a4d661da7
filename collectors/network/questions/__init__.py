"""The few questions asked of open ports."""
