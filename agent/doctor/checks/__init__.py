"""What doctor looks at: one file a subject."""
