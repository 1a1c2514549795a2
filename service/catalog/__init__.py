"""Curated facts with sources."""
