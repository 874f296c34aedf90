#!/usr/bin/env python3
"""What `dflash-harness report` runs; `ci/python reports/report.py` does the same."""

import sys

from dflash_report.__main__ import main

sys.exit(main(sys.argv[1:]))
