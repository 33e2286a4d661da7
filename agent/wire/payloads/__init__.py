"""The two report payloads (contract: Report payload)."""
