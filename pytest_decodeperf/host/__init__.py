"""Facts of this machine: the card, its driver, the kernel it runs under."""
