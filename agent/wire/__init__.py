"""The contract with the service as strict, frozen, bounded models. No I/O, no decisions."""
