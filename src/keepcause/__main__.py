"""The command `keepcause`, also run by `python -m keepcause`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns its exit code."""
    from keepcause import cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
