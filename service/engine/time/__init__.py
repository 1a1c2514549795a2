"""What users see under load."""
