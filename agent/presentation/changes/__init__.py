"""What is another than in the report before: two reports of one kind, in plain words."""
