"""A stage for the console: a real service, devices that are played, and Chromium in between."""
