"""What earlier checks of a program found, as far as it holds, and what this one adds; imports linter and cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keepcause.cache import Record, Result
    from keepcause.lint.evidence.index import Entry
    from keepcause.lint.evidence.program import Program
    from keepcause.lint.evidence.use import Used


class History:
    """The results of files of one program, and what they depend on."""

    def __init__(self, record: Record, files: Mapping[str, str], program: Callable[[], Program | None]) -> None:
        """`files` are those that are asked for, as they are named, with their names below the program's root.

        `record` has been loaded; `program` is asked for only if something is to be checked.
        """
        self._record = record
        self.files = files
        self._uses: dict[str, Used] = {}
        self.stale: set[str] = set()
        """Those that are to be checked again as they depend on what has changed in others."""
        is_known = not record.changed and all(name in record.results for name in files.values())
        self._program = None if is_known else program()
        if self._program:
            self._forget(self._program)

    def results(self) -> dict[str, Result | None]:
        """What is known of those files."""
        known = self._record.results
        return {path: known[name] for path, name in self.files.items() if name in known}

    def add(self, path: str, result: Result | None, used: Used | None) -> None:
        """Add what was found in a file, and what its check has asked of the program."""
        if result and result[1] and result[1].passing:
            return
        name = self.files[path]
        self._record.results[name] = result
        self._record.is_outdated = True
        if used:
            self._uses[name] = used

    def store(self) -> None:
        """Keep all of it, if it is more than was known, for later checks."""
        if self._record.is_outdated:
            if self._program:
                self._record.keep_program([self._program.index.entries, self._uses])
            self._record.store()

    def _forget(self, program: Program) -> None:
        """Forget what may hold no longer, since files of the program have changed."""
        from keepcause.lint.evidence.use import reached  # here, as what is known already needs no linter

        known = self._record.results
        before, self._uses = _read(self._record.program())
        changed = self._record.changed.intersection(program.paths)
        program.know({name: entry for name, entry in before.items() if name not in changed})
        stale = reached(self._uses, program, changed, before)
        if stale is None:
            known.clear()
            self._uses.clear()
            return
        self.stale = {path for path, name in self.files.items() if name in stale}
        for name in stale | changed:
            known.pop(name, None)
            self._uses.pop(name, None)


def _read(kept: Any) -> tuple[dict[str, Entry], dict[str, Used]]:
    """The entries of the program's index and what checks have used, from lists of the fields of each."""
    from keepcause.lint.evidence.index import Entry
    from keepcause.lint.evidence.mentions import Question
    from keepcause.lint.evidence.use import Used

    entries, uses = kept or ({}, {})
    return {path: Entry(*entry) for path, entry in entries.items()}, {
        path: Used(
            frozenset(files),
            frozenset(Question(verb, tuple(names), tuple(words), file) for verb, names, words, file in questions),
            frozenset(bases),
        )
        for path, (files, questions, bases) in uses.items()
    }
