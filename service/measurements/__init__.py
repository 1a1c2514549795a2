"""What callers measured themselves, a start-up log or a benchmark's result, held against what is predicted of it."""
