"""``python -m kvspec.spec.proofs``: the same as ``kvspec prove``."""

import sys

from .command import main

sys.exit(main())
