"""The database: its tables, transactions, backups and messages between processes."""
