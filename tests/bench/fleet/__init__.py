"""The reference service under a fleet: devices that speak plain HTTP, not the project's client."""
