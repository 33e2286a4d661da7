"""The messages of the contract with the service as strict, frozen and bounded models."""
