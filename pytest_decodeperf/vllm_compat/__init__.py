"""The only room that names a vLLM version or reaches into its private attributes."""
