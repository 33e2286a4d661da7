"""Checks of this device, each with its verdict and its fix."""
