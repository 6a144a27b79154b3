"""Frozen records of what decode steps did; everything downstream reads these."""
