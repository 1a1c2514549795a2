"""What one GPU holds."""
