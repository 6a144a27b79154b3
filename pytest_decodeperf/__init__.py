"""Assert the performance properties of a booted vLLM, and judge throughput honestly.

Importing this package imports neither torch nor vllm: they are loaded when a test needs them.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
