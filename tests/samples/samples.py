"""Code that tests of several rooms check."""

from __future__ import annotations

WORKER = """\
class Worker:
    def init_device(self):
        try:
            self.open()
        except OSError:
            raise RuntimeError("no device") from None
"""
"""A file with one KC101 finding, at line 6 and column 13, that has a safe fix."""
REPAIRED = WORKER.replace("except OSError:", "except OSError as e:").replace("from None", "from e")
