"""Writes the sales and refunds of a merchant together with their rollups."""
