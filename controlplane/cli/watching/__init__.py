"""What the command line says of being heard: places, the webhook, wishes, thirty days."""
