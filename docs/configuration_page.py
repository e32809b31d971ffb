"""The page of the configuration, made from the one table of keys."""

from __future__ import annotations

from keepcause.config import KEYS, Key
from keepcause.config.kinds import TRUTH

_PAGE = """\
# Configuration

keepcause reads the table `[tool.keepcause]` of the nearest `pyproject.toml` that has one: for each file the one in its
folder, or in the first folder above. Files are not merged, and there is no `extend`. `--config FILE` names the one file
to read, `--isolated` reads none; `keepcause check --verbose` says which one counts. `keepcause check`,
`keepcause fix`, `keepcause trace` and the flake8 plugin read the same keys; options win over them, and so do flake8's
own.

```toml
[tool.keepcause]
{example}
```

A key that there is not, or a value of the wrong type, is an error that names the file, the key and the nearest one that
there is. Lists are separated by commas in an option.

## Globs

`*` stands for any text, also across folders, `?` for one character, `[ab]` for one of a few, `{{a,b}}` for one of some
texts, `**/` for any folders or none. A glob without a slash, but perhaps at its end, names a file or folder anywhere;
one with a slash counts from the folder of the `pyproject.toml`, in an option or a file that `--config` names from the
working directory.

## Keys

{keys}

## What is looked at

- A file that is named is checked, whatever it is called, excluded or ignored by git or not. Notebooks are not read.
- In a folder those files count that end in `.py` and that git does not ignore. Stubs (`.pyi`) run no code and are left
  out. Repositories inside of a repository, submodules too, are checked where they are named.
- A path that leads to nothing, or to a folder without a Python file, is trouble: exit code 2.

`keepcause check -` reads one file's text from standard input, and `--stdin-filename FILE` tells which file that is, so
that its configuration and its program count; without it the text stands alone. `keepcause fix -` prints the repaired
text, and all else on the error stream:

```sh
keepcause check --stdin-filename service/worker.py - < worker.py
```

`--files-from FILE` reads a list of paths, a line each or separated by NUL; `-` reads the list from standard input. What
is no Python file, by its extension or by its first line, is left out of it, and an empty list names nothing:

```sh
git diff -z --name-only --relative --diff-filter=d main | keepcause check --files-from -
```
"""


def configuration_page() -> str:
    """The text of docs/configuration.md."""
    example = "\n".join(f"{key.name} = {key.example}" for key in KEYS)
    return _PAGE.format(example=example, keys="\n\n".join(map(_section, KEYS)))


def toml(value: object) -> str:
    """A key's default as a file would hold it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list():
            return f"[{', '.join(map(toml, value))}]"
    assert value == {}
    return "{}"


def _section(key: Key) -> str:
    options = [f"`--{key.name}`, `--no-{key.name}`" if key.kind is TRUTH else f"`--{key.name} {_metavar(key)}`"]
    if key.flake8:
        options.append(f"in flake8 `--keepcause-{key.name}`")
    lines = [
        f"### {key.name}",
        "",
        f"{key.help[0].upper()}{key.help[1:]}.",
        *(["", key.more] if key.more else []),
        "",
        f"- Type: {key.kind.says}",
        f"- Default: `{toml(key.default)}`",
        f"- Example: `{key.name} = {key.example}`",
        f"- Option: {', '.join(options)}",
    ]
    return "\n".join(lines)


def _metavar(key: Key) -> str:
    return key.kind.metavar or f"{{{','.join(key.kind.choices)}}}"
