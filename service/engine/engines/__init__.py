"""The rules of the serving engines, by version."""
