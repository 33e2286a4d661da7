"""Support of the contract: how it is reached, and what is linked with an organization."""
