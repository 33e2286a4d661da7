"""Support (contract: Support): its channels, and their links with organizations."""
