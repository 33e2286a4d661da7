"""What both collectors use."""
