"""Questions: one file holds one whole, from its fields to its answer as rows and lines. Nothing here knows HTTP."""
