"""Compares the engine with published measurements, and says by how much it is off."""
