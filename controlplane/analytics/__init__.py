"""The operations of the facade over figures: analytics and reports."""
