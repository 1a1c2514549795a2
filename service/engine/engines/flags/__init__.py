"""How each engine is started: its program, and its flags."""
