"""The operations of the facade for figures: analytics and reports."""
