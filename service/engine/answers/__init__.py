"""The answers, whole."""
