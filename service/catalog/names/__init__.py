"""What people call models and GPUs, read into what the catalog calls them; nothing near is taken for the same."""
