"""Shows the connectivity record: titles of causes, hours as a timeline, charts."""
