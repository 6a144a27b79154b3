"""Statistics over boots: intervals, tolerances, one of six verdicts."""
