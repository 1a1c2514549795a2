"""The decision, checked from outside: exhaustive enumeration, GPUs that grow in number, and commands of all models.

`make decision` runs everything and keeps the last figures; a small slice is among the tests.
"""
