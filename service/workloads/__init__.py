"""Questions that are kept under a name: their rows, their versions, and who changed what."""
