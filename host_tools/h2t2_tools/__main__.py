"""`python -m h2t2_tools` is `h2t2`."""

import sys

from .cli.main import main

sys.exit(main())
