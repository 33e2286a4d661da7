"""The questions of the allow-list, which are sent to open ports."""
