"""`[tool.keepcause]` of the nearest pyproject.toml, and the table of its keys; imports the linter's data only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepcause.config.globs import matcher
from keepcause.config.kinds import (
    ALL,
    CODES,
    CODES_BY_GLOB,
    FUNCTIONS,
    GLOBS,
    NAMES,
    REFERENCE,
    TRUTH,
    Kind,
    means,
    one_of,
)
from keepcause.lint.files import SKIPPED, read
from keepcause.lint.finding import Grade
from keepcause.lint.options import Declared, Structured
from keepcause.lint.rule import all_codes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepcause.lint.engine import Settings

FOR_PEOPLE = ("full", "concise")
FORMATS = (*FOR_PEOPLE, "json", "github", "gitlab", "sarif")
"""The output formats; those for people may be coloured, and are followed by a summary."""


class ConfigError(Exception):
    """A configuration can't be used; the message names the file, the key and what to do."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        """One line for the error stream."""
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class Key:
    """One key of `[tool.keepcause]`; `default` and `example` are as a file holds them, `flake8` has an option too."""

    name: str
    kind: Kind
    default: object
    help: str
    example: str
    more: str = ""
    flake8: bool = False

    @property
    def option(self) -> str:
        """The option of `check` and `fix`."""
        return f"--{self.name}"


KEYS = (
    Key(
        "select",
        CODES,
        ["KC"],
        "rules to check for, by code or prefix; a rule that is off needs its full code, or `ALL`",
        '["KC101", "KC2"]',
        "As an option it stands for the file's `select` and `extend-select`, and counts also where the file ignores "
        "the same or more.",
    ),
    Key("extend-select", CODES, [], "rules to check for as well", '["KC202"]'),
    Key(
        "ignore",
        CODES,
        [],
        "rules to leave out, by code or prefix",
        '["KC103"]',
        "Where both a selected and an ignored beginning fit a rule, the longer one counts: `extend-select` of `KC101` "
        "wins over `ignore` of `KC1`, and `ALL` is the shortest. As an option it adds to the file's.",
    ),
    Key(
        "per-file-ignores",
        CODES_BY_GLOB,
        {},
        "rules to leave out in some files",
        '{ "tests/*" = ["KC1"], "!src/*" = ["KC103"] }',
        "A `!` before the glob names all other files. The option takes `tests/*:KC1,KC2`.",
    ),
    Key(
        "exclude",
        GLOBS,
        sorted(SKIPPED),
        "files and folders to leave out where a folder is looked through",
        '[".venv", "third_party", "service/generated/*"]',
        "It chooses what is reported. Excluded files still count as evidence of what runs while a worker starts.",
    ),
    Key("extend-exclude", GLOBS, [], "files and folders to leave out as well", '["third_party"]'),
    Key(
        "force-exclude",
        TRUTH,
        False,
        "leave out excluded paths also where they are named",
        "true",
        "Without it a file that is named is checked, excluded or not. The hooks for pre-commit, which names each file, "
        "turn it on.",
    ),
    Key(
        "evidence",
        one_of(*Grade),
        Grade.LIKELY.value,
        "the least sure worker-init evidence that is reported",
        '"sure"',
        flake8=True,
    ),
    Key(
        "single-file",
        TRUTH,
        False,
        "take worker-init evidence from each file alone, as flake8 does",
        "true",
    ),
    Key(
        "worker-init",
        FUNCTIONS,
        [],
        "functions that run while a worker starts: `pkg.mod:Class.method`, `*` for any text",
        '["service.jobs:Job.enter", "service.workers.*"]',
        flake8=True,
    ),
    Key(
        "not-worker-init",
        FUNCTIONS,
        [],
        "functions that do not, whatever the evidence says",
        '["service.workers.front:*"]',
        flake8=True,
    ),
    Key(
        "rank-names",
        NAMES,
        list(Structured.rank_names),
        "names that hold a worker's rank, such as `rank` or `self.rank`",
        '["rank", "self.worker_index"]',
        flake8=True,
    ),
    Key(
        "worker-init-error",
        REFERENCE,
        Structured.worker_init_error,
        "class that KC401 raises, as `module:Name`",
        '"mypkg.errors:WorkerInitError"',
        flake8=True,
    ),
    Key(
        "checkpoint-error",
        REFERENCE,
        Structured.checkpoint_error,
        "class that KC402 raises, as `module:Name`",
        '"mypkg.errors:DCPLoadError"',
        flake8=True,
    ),
    Key("unsafe-fixes", TRUTH, False, "make unsafe repairs as well", "true"),
    Key("output-format", one_of(*FORMATS), "full", "how findings are printed", '"concise"'),
)
"""The one table of what can be configured: options, flake8's options and docs/configuration.md are made from it."""

_DECIDE_NOTHING = frozenset(("exclude", "extend-exclude", "force-exclude", "unsafe-fixes", "output-format"))
"""Keys that choose files, or what becomes of what is found in them."""

Config = dict[str, Any]
"""Every key with its value, as `Kind.read` gives it."""


def defaults() -> Config:
    """Every key with its default."""
    return {key.name: key.kind.read(key.default, Path("/")) for key in KEYS}


def load(path: Path, folder: Path | None = None) -> Config | None:
    """The configuration in the file at `path`; None where it has no `[tool.keepcause]`. Raises ConfigError.

    Its globs count from `folder`, or from where the file is.
    """
    import tomllib  # here, as is the linter below: not every run needs it

    try:
        table: object = tomllib.loads(read(path).decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(path, f"can't be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(path, f"not valid TOML: {error}") from error
    for name in ("tool", "keepcause"):
        if not isinstance(table, dict):
            return None
        table = table.get(name)
    return None if table is None else _config(table, path, folder or Path(os.path.abspath(path)).parent)


def _config(table: object, path: Path, folder: Path) -> Config:
    if not isinstance(table, dict):
        raise ConfigError(path, "[tool.keepcause] is not a table")
    config = defaults()
    keys = {key.name: key for key in KEYS}
    for name, value in table.items():
        if name not in keys:
            import difflib

            close = difflib.get_close_matches(name, keys, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(keys)}"
            raise ConfigError(path, f"[tool.keepcause] has no key {name!r}; {hint}")
        try:
            config[name] = keys[name].kind.read(value, folder)
        except ValueError as error:
            raise ConfigError(path, f"[tool.keepcause] {name}: {error}") from error
    return config


def overridden(config: Config, given: Config) -> Config:
    """`config` with what the command line says on top of it.

    What it selects counts also where the file ignores the same or more, and the other way round; a `select` stands for
    all that the file selects, and lists of more are added to the file's.
    """
    select, more, ignore = (given.get(name, ()) for name in ("select", "extend-select", "ignore"))
    chosen = (*select, *more)
    was_more = () if "select" in given else config["extend-select"]
    return {
        **config,
        **given,
        "select": given.get("select", without(config["select"], ignore)),
        "extend-select": (*without(was_more, ignore), *more),
        "ignore": (*(old for old in config["ignore"] if old not in chosen), *ignore),
        "extend-exclude": config["extend-exclude"] + given.get("extend-exclude", ()),
    }


def without(codes: Iterable[str], named: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `codes` that no code or prefix in `named` means."""
    return tuple(code for code in codes if not any(means(name, code) for name in named))


def spelled(config: Config) -> str:
    """What decides under `config` what is found in a file: the same text for the same, in every process."""
    return repr(sorted((name, value) for name, value in config.items() if name not in _DECIDE_NOTHING))


def settings(config: Config, path: str) -> Settings:
    """What the linter is to look for under `config` in the file at `path` (absolute)."""
    from keepcause.lint.engine import Settings

    codes = enabled((*config["select"], *config["extend-select"]), config["ignore"])
    for pattern, ignored in config["per-file-ignores"]:
        positive = pattern.removeprefix("!")
        if matcher((positive,))(path) is (positive == pattern):
            codes = frozenset(without(codes, ignored))
    return Settings(
        codes=codes,
        evidence=Grade(config["evidence"]),
        single_file=config["single-file"],
        declared=Declared(config["worker-init"], config["not-worker-init"]),
        structured=Structured(config["worker-init-error"], config["checkpoint-error"], config["rank-names"]),
    )


def enabled(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    """The codes that are on: those that a longer beginning selects than ignores.

    Only its full code, or `ALL`, turns on a rule that is off by default.
    """
    from keepcause.lint.rule import all_rules

    return frozenset(
        rule.code
        for rule in all_rules()
        if (rule.on_by_default or not {rule.code, ALL}.isdisjoint(select))
        and _longest(rule.code, select) > _longest(rule.code, ignore)
    )


def selecting_nothing(config: Config) -> list[str]:
    """The beginnings of codes that are selected and turn on none: every rule that they mean needs its full code."""
    named = (*config["select"], *config["extend-select"])
    beginnings = [name for name in named if name not in ("KC", ALL, *all_codes())]
    on = enabled(named, ()) if beginnings else ()  # not every run needs the rules
    return [name for name in beginnings if not any(means(name, code) for code in on)]


def _longest(code: str, named: Iterable[str]) -> int:
    """How much of `code` is named: 0 where `ALL` is, -1 where it is not named."""
    return max((0 if name == ALL else len(name) for name in named if means(name, code)), default=-1)
