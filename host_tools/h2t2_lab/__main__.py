"""`python -m h2t2_lab`."""

import sys

from .command_line import main

if __name__ == "__main__":  # a worker process imports this module under another name
    sys.exit(main())
