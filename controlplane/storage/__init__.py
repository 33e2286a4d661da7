"""The database: its tables, its transactions, and who is woken by a change."""
