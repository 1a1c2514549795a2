"""What was published, read into values: start-up logs of each engine, serving runs, and what a planner computed."""
