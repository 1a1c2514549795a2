"""Readers of config fields, shared by families."""
