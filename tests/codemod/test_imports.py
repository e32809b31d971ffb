"""Imports that repairs need, put where a person would put them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from keepcause.codemod.imports import added_import
from keepcause.codemod.verify import RefusedError
from keepcause.lint.source import Source
from keepcause.lint.structured.errors import class_name

if TYPE_CHECKING:
    from pathlib import Path

USE = "\n\ndef start(rank):\n    raise RuntimeError\n"


def parsed(text: str) -> tuple[Source, ast.Raise]:
    """A file of a project, and the raise in it."""
    source = Source(text.encode(), "src/vllm/v1/worker.py")
    (at,) = (node for node in ast.walk(source.tree) if isinstance(node, ast.Raise))
    return source, at


def place(head: str, module: str = "keepcause", use: str = USE) -> str:
    """The head of the file with its import."""
    source, at = parsed(head + use)
    start, end, text = added_import(source, f"{module}:WorkerInitError", at, own={"vllm"})
    changed = source.text[:start] + text + source.text[end:]
    ast.parse(changed)
    assert changed.endswith(use)
    return changed.removesuffix(use)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(
            "import os\nimport sys\n\nimport ray\nimport torch\n\nfrom vllm import x\n",
            "import os\nimport sys\n\nimport ray\nimport torch\n"
            "from keepcause import WorkerInitError\n\nfrom vllm import x\n",
            id="the block of installed packages",
        ),
        pytest.param(
            "import os\n\nfrom ray import get\nfrom torch import nn\n",
            "import os\n\nfrom keepcause import WorkerInitError\nfrom ray import get\nfrom torch import nn\n",
            id="first of its block",
        ),
        pytest.param(
            "import os\n\nfrom huggingface_hub import x\nimport ray\nfrom torch import nn\n",
            "import os\n\nfrom huggingface_hub import x\nfrom keepcause import WorkerInitError\n"
            "import ray\nfrom torch import nn\n",
            id="sorted by module",
        ),
        pytest.param(
            "from torch import nn\nimport ray\nfrom attr import s\n",
            "from torch import nn\nimport ray\nfrom attr import s\nfrom keepcause import WorkerInitError\n",
            id="in no order",
        ),
        pytest.param(
            "import os\n\nfrom vllm import x\nfrom . import y\n",
            "import os\n\nfrom keepcause import WorkerInitError\n\nfrom vllm import x\nfrom . import y\n",
            id="a block of its own between others",
        ),
        pytest.param(
            "import os\n", "import os\n\nfrom keepcause import WorkerInitError\n", id="after the standard library"
        ),
        pytest.param(
            "from __future__ import annotations\n",
            "from __future__ import annotations\n\nfrom keepcause import WorkerInitError\n",
            id="after __future__",
        ),
        pytest.param(
            "import os\nimport ray\nfrom vllm import x\n",
            "import os\nimport ray\nfrom keepcause import WorkerInitError\nfrom vllm import x\n",
            id="one block for all",
        ),
        pytest.param(
            "import os\nfrom vllm import x\n",
            "import os\nfrom keepcause import WorkerInitError\nfrom vllm import x\n",
            id="one block without its like",
        ),
        pytest.param(
            "# Own things\nfrom vllm import x\n",
            "# Own things\nfrom keepcause import WorkerInitError\n\nfrom vllm import x\n",
            id="below the file's own comment",
        ),
        pytest.param(
            "'''Doc.'''\n\n# Own things\nfrom vllm import x\n",
            "'''Doc.'''\n\nfrom keepcause import WorkerInitError\n\n# Own things\nfrom vllm import x\n",
            id="above a comment that belongs to the next import",
        ),
        pytest.param(
            "import os\n\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import ray\n",
            "import os\n\nfrom typing import TYPE_CHECKING\n\n"
            "from keepcause import WorkerInitError\n\nif TYPE_CHECKING:\n    import ray\n",
            id="not under TYPE_CHECKING",
        ),
        pytest.param(
            "import ray  # why\nlogger = 1\n",
            "import ray  # why\nfrom keepcause import WorkerInitError\nlogger = 1\n",
            id="after a comment at the line's end",
        ),
        pytest.param(
            "import ray\n\n\nclass A:\n    pass\n\n\nfrom torch import nn\n",
            "import ray\nfrom keepcause import WorkerInitError\n\n\nclass A:\n    pass\n\n\nfrom torch import nn\n",
            id="not below definitions",
        ),
        pytest.param(
            "from torch import (\n    nn,\n)\n",
            "from keepcause import WorkerInitError\nfrom torch import (\n    nn,\n)\n",
            id="an import of several lines",
        ),
        pytest.param("'''Doc.'''\n", "'''Doc.'''\n\nfrom keepcause import WorkerInitError\n", id="after the docstring"),
        pytest.param(
            "'''Doc.'''\nx = 1\n",
            "'''Doc.'''\n\nfrom keepcause import WorkerInitError\n\nx = 1\n",
            id="tight docstring",
        ),
        pytest.param(
            "#!/bin/python\n# Mine\n\nx = 1\n",
            "#!/bin/python\n# Mine\n\nfrom keepcause import WorkerInitError\n\nx = 1\n",
            id="after the file's own comment",
        ),
        pytest.param("import ray\r\n", "import ray\r\nfrom keepcause import WorkerInitError\r\n", id="line ends"),
        pytest.param(
            "import os\r\n", "import os\r\n\r\nfrom keepcause import WorkerInitError\r\n", id="line ends of a new block"
        ),
    ],
)
def test_a_line_of_its_own(head: str, expected: str) -> None:
    assert place(head) == expected


def test_a_project_of_its_own_errors() -> None:
    head = "import os\n\nimport ray\n\nfrom vllm.config import x\nfrom vllm.utils import y\n"
    expected = head.replace("from vllm.utils", "from vllm.errors import WorkerInitError\nfrom vllm.utils")
    assert place(head, "vllm.errors") == expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("def f():\n    raise X\n", "from keepcause import WorkerInitError\n\n\ndef f():\n    raise X\n"),
        (
            "# f\n@d\ndef f():\n    raise X\n",
            "# f\nfrom keepcause import WorkerInitError\n\n\n@d\ndef f():\n    raise X\n",
        ),
        (
            "\n# f\n@d\nclass A:\n    raise X\n",
            "\nfrom keepcause import WorkerInitError\n\n\n# f\n@d\nclass A:\n    raise X\n",
        ),
        ("import a; raise X", "import a; raise X\nfrom keepcause import WorkerInitError"),
    ],
)
def test_files_without_imports(use: str, expected: str) -> None:
    source = Source(use.encode())
    at = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Raise))
    splice = added_import(source, "keepcause:WorkerInitError", at)
    assert source.text[: splice[0]] + splice[2] + source.text[splice[1] :] == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("from keepcause import guard\n", "from keepcause import WorkerInitError, guard\n"),
        ("from keepcause import ShapeConflict\n", "from keepcause import ShapeConflict, WorkerInitError\n"),
        ("from keepcause import Aa, Zz  # why\n", "from keepcause import Aa, WorkerInitError, Zz  # why\n"),
        ("from keepcause import guard as g, Aa\n", "from keepcause import guard as g, Aa, WorkerInitError\n"),
        ("from keepcause import (A)\n", "from keepcause import (A, WorkerInitError)\n"),
        ("from keepcause import A, \\\n    Zz\n", "from keepcause import A, \\\n    WorkerInitError, Zz\n"),
        (
            "from keepcause import (  # why\n    A,  # a\n    Zz,  # z\n)\n",
            "from keepcause import (  # why\n    A,  # a\n    WorkerInitError,\n    Zz,  # z\n)\n",
        ),
        (
            "from keepcause import (\n    A,\n    B,  # b\n)\n",
            "from keepcause import (\n    A,\n    B,  # b\n    WorkerInitError,\n)\n",
        ),
        (
            "from keepcause import (\n    A,\n    B  # b\n    # c\n)\n",
            "from keepcause import (\n    A,\n    B,  # b\n    # c\n    WorkerInitError\n)\n",
        ),
        ("from keepcause import (\n\tA\n)\n", "from keepcause import (\n\tA,\n\tWorkerInitError\n)\n"),
        (
            "from keepcause import (A,\n                       Zz)\n",
            "from keepcause import (A,\n                       WorkerInitError,\n                       Zz)\n",
        ),
        (
            "from keepcause import (\r\n    A,\r\n)\r\n",
            "from keepcause import (\r\n    A,\r\n    WorkerInitError,\r\n)\r\n",
        ),
    ],
)
def test_an_import_that_is_there_already(head: str, expected: str) -> None:
    assert place(head) == expected


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("from keepcause import WorkerInitError\n", "WorkerInitError"),
        ("from keepcause import WorkerInitError as W\n", "W"),
        ("from keepcause import (\n    A,\n    WorkerInitError,\n)\n", "WorkerInitError"),
    ],
)
def test_nothing_twice(head: str, name: str) -> None:
    source, at = parsed(head + USE)
    assert class_name("keepcause:WorkerInitError", at, source) == (name, ())
    with pytest.raises(RefusedError, match=f"`{name}` is imported already"):
        place(head)


@pytest.mark.parametrize("shadow", ["keepcause.py", "keepcause/__init__.py"])
def test_a_module_that_hides_the_installed_one(shadow: str, tmp_path: Path) -> None:
    path = tmp_path / "service" / "worker.py"
    path.parent.mkdir()
    (path.parent / "__init__.py").touch()
    source = Source(USE.encode(), str(path))
    at = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Raise))
    (path.parent / "keepcause.py").touch()  # hides nothing, as it is in a package
    other = tmp_path / shadow
    other.parent.mkdir(exist_ok=True)
    other.write_text("class OtherError(Exception): ...\n")
    with pytest.raises(RefusedError, match="`keepcause` is a module beside this file, which has no `WorkerInitError`"):
        added_import(source, "keepcause:WorkerInitError", at)
    other.write_text("from keepcause.worker import WorkerInitError\n")
    assert "from keepcause import" in added_import(source, "keepcause:WorkerInitError", at)[2]


def test_a_relative_import_counts() -> None:
    head = "from ..errors import WorkerInitError\n"
    source, at = parsed(head + USE)
    assert class_name("vllm.errors:WorkerInitError", at, source) == ("WorkerInitError", ())
    assert place("from ..errors import A\n", "vllm.errors") == "from ..errors import A, WorkerInitError\n"


@pytest.mark.parametrize(
    ("head", "use", "reason"),
    [
        ("class WorkerInitError(Exception): ...\n", USE, "means something else"),
        ("from mine import WorkerInitError\n", USE, "means something else"),
        ("from mine import *\n", "\ndef f():\n    WorkerInitError\n    raise X\n", "means something else"),
        ("import os\n", "\ndef f(WorkerInitError):\n    raise X\n", "means something else"),
        ("from keepcause import WorkerInitError\n", "\ndef f(WorkerInitError):\n    raise X\n", "means something else"),
        ("from keepcause import WorkerInitError\nWorkerInitError = 1\n", USE, "means something else"),
        ("if TYPE_CHECKING:\n    from keepcause import WorkerInitError\n", USE, "only under a condition"),
    ],
)
def test_clashes(head: str, use: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        place(head, use=use)
