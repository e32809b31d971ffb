"""Code that tests of several rooms check."""

from __future__ import annotations

HEAD = """\
class Worker:
    def init_device(self):
        try:
            self.open()
        except OSError:
"""
"""A handler in the start-up of a worker, up to what it does."""
WORKER = f'{HEAD}            raise RuntimeError("no device") from None\n'
"""A file with one KC101 finding, at line 6 and column 13, that has a safe fix."""
REPAIRED = WORKER.replace("except OSError:", "except OSError as e:").replace("from None", "from e")
