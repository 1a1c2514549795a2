"""Imports models from a hub: its client, the format of weight files, and the way to a catalog entry."""
