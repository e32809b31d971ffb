"""`[tool.keepcause]` of the nearest pyproject.toml, and the table of its keys; imports the linter's data only."""

from __future__ import annotations

import difflib
import functools
import os
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepcause.lint.engine import Settings
from keepcause.lint.files import read
from keepcause.lint.finding import Grade
from keepcause.lint.graph import Declared
from keepcause.lint.options import Structured
from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

FORMATS = ("full", "concise", "json")


class ConfigError(Exception):
    """A configuration can't be used; the message names the file, the key and what to do."""


@dataclass(frozen=True)
class Key:
    """One key of `[tool.keepcause]`; `read` turns its value into what is used, or raises ValueError if it can't."""

    name: str
    default: object
    read: Callable[[object], object]
    help: str


def codes(value: object) -> tuple[str, ...]:
    """A list of rule codes or prefixes; raises ValueError where one means no rule."""
    known = [rule.code for rule in all_rules()]
    listed = texts(value)
    for code in listed:
        if not code or not any(rule.startswith(code) for rule in known):
            raise ValueError(f"no rule has the code {code!r}; there are {', '.join(known)}")
    return listed


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"expected a list of texts, not {value!r}")
    return tuple(value)


def names(value: object) -> tuple[str, ...]:
    """A list of names such as `rank` or `self.rank`."""
    listed = texts(value)
    for name in listed:
        if not all(part.isidentifier() for part in name.split(".")) or name.count(".") > 1:
            raise ValueError(f"expected names such as 'rank' or 'self.rank', not {name!r}")
    return listed


def reference(value: object) -> str:
    """A class, as `module:Name`."""
    module, colon, name = str(value).partition(":")
    if not isinstance(value, str) or not colon or not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError(f"expected a class such as 'mypkg.errors:MyError', not {value!r}")
    return value


def truth(value: object) -> bool:
    """`true` or `false`."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {value!r}")
    return value


def one_of(*choices: str) -> Callable[[object], str]:
    """One of a few words."""

    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return read


KEYS = (
    Key(
        "select",
        ("KC",),
        codes,
        "rules to check for, by code or prefix; a rule that is off needs its full code",
    ),
    Key("ignore", (), codes, "rules to leave out, by code or prefix"),
    Key("evidence", Grade.LIKELY.value, one_of(*Grade), "the least sure worker-init evidence that is reported"),
    Key("single-file", False, truth, "take worker-init evidence from each file alone, as flake8 does"),
    Key("worker-init", (), texts, "functions that run while a worker starts: `pkg.mod:Class.method`, `*` for any text"),
    Key("not-worker-init", (), texts, "functions that do not, whatever the evidence says"),
    Key("rank-names", Structured.rank_names, names, "names that hold a worker's rank, such as `rank` or `self.rank`"),
    Key("worker-init-error", Structured.worker_init_error, reference, "class that KC401 raises, as `module:Name`"),
    Key("checkpoint-error", Structured.checkpoint_error, reference, "class that KC402 raises, as `module:Name`"),
    Key("output-format", "full", one_of(*FORMATS), "how findings are printed"),
)

Config = dict[str, Any]


def defaults() -> Config:
    """Every key with its default."""
    return {key.name: key.default for key in KEYS}


def load(path: Path) -> Config | None:
    """The configuration in the file at `path`; None where it has no `[tool.keepcause]`. Raises ConfigError."""
    try:
        table: object = tomllib.loads(read(path).decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    for name in ("tool", "keepcause"):
        if not isinstance(table, dict):
            return None
        table = table.get(name)
    return None if table is None else _config(table, path)


def _config(table: object, path: Path) -> Config:
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.keepcause] is not a table")
    config = defaults()
    keys = {key.name: key for key in KEYS}
    for name, value in table.items():
        if name not in keys:
            close = difflib.get_close_matches(name, keys, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(keys)}"
            raise ConfigError(f"{path}: [tool.keepcause] has no key {name!r}; {hint}")
        try:
            config[name] = keys[name].read(value)
        except ValueError as error:
            raise ConfigError(f"{path}: [tool.keepcause] {name}: {error}") from error
    return config


@functools.cache
def nearest(folder: Path) -> Config:
    """The configuration that counts in `folder` (absolute): the nearest one at or above it, else the defaults."""
    here = folder / "pyproject.toml"
    if os.path.isfile(here) and (config := load(here)) is not None:
        return config
    return nearest(folder.parent) if folder != folder.parent else defaults()


def overridden(config: Config, given: Mapping[str, object]) -> Config:
    """`config` with what the command line says on top of it.

    A `select` of the command line counts also where the file ignores what it names; its `ignore` adds to the file's.
    """
    ignore = config["ignore"]
    if "select" in given:
        ignore = [code for code in ignore if not any(chosen.startswith(code) for chosen in texts(given["select"]))]
    if "ignore" in given:
        ignore = [*ignore, *texts(given["ignore"])]
    return {**config, **given, "ignore": tuple(ignore)}


def settings(config: Config) -> Settings:
    """What the linter is to look for under `config`."""
    return Settings(
        codes=enabled(config["select"], config["ignore"]),
        evidence=Grade(config["evidence"]),
        single_file=config["single-file"],
        declared=Declared(config["worker-init"], config["not-worker-init"]),
        structured=Structured(config["worker-init-error"], config["checkpoint-error"], config["rank-names"]),
    )


def enabled(select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """The codes that are on; only its full code turns on a rule that is off by default."""
    select, ignore = tuple(select), tuple(ignore)
    return frozenset(
        rule.code
        for rule in all_rules()
        if (rule.code in select or (rule.on_by_default and rule.code.startswith(select)))
        and not rule.code.startswith(ignore)
    )
