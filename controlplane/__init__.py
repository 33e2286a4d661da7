"""The reference service for agents and operators, and `venue-control`. See docs/controlplane.md."""
