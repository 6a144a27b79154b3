"""What is booted: argv, environment with origins, hardware, expectations. Knows no vLLM."""
