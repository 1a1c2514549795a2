"""The parts questions are put together from: fields that belong together, and their way into the engine's values."""
