"""Reports that are asked of devices when they are back."""
