"""Sizer: how many GPUs an LLM workload needs, by the serving engine's own arithmetic."""
