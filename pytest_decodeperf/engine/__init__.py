"""Boot vLLM in-process from a launch, drive a closed loop of decode steps, tear it down."""
