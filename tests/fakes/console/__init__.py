"""An environment for the console: a real service, simulated devices, and Chromium."""
