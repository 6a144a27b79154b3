"""``python -m pytest_decodeperf`` is the ``decodeperf`` command."""

import sys

from pytest_decodeperf.cli import main

if __name__ == "__main__":
    sys.exit(main())
