"""The command `keepcause`, also run by `python -m keepcause`."""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` looks for modules in the working directory first; what is checked there must not be run.
    del sys.path[0]

_INTERRUPTED = 130


def main() -> int:
    """Run the command line; returns its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - it stays open as long as we run
    # Syntax trees and scopes have no cycles and go when they are dropped; the collector would take as long as parsing.
    gc.disable()
    try:
        from keepcause import cli

        return cli.main(sys.argv[1:])
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        gc.freeze()  # else Python, as it ends, looks through all that there is once more


if __name__ == "__main__":
    raise SystemExit(main())
