"""The retail public API: tokens, catalog, sales (contract: retail public API)."""
