"""Subcommands of ``decodeperf``, one module each."""
