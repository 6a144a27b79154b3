"""Record one window of decode steps, or read a trace that was recorded elsewhere."""
