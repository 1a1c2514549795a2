"""HTTP in and out; nothing here computes."""
