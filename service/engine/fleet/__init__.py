"""Replicas, layouts and prices."""
