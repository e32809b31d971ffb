"""A file alone in which something proves a worker-init path is parsed, however that is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from screened import given
from unscreened import unscreened

from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.evidence.screen import may_have_child, may_have_root
from keepcause.lint.finding import Grade

if TYPE_CHECKING:
    from pathlib import Path

LOST = """\
    try:
        act()
    except OSError:
        raise Failed() from None
"""
SILENT = """\
    try:
        act()
    except Exception:
        pass
"""
PARENTS = {
    "start-up by its name": "def init_device():\n{lost}",
    "a name on another line": "def \\\n  init_worker():\n{lost}",
    "a name behind a comment mark": "async def load_weights ():\n{lost}",
    "a name that is read as another one": "def \uff49nit_worker():\n{lost}",
    "waiting": "from pkg import workers\ndef boot():\n{lost}    workers.wait_until_ready()\n",
    "waiting by a function that is imported": "from pkg import wait_for_ready as wait\ndef boot():\n    wait()\n{lost}",
    "driving": "from pkg import WorkerProc\ndef boot():\n    WorkerProc . start_workers()\n{lost}",
    "driving by another name": (
        "from pkg import GpuExecutor as E\ndef boot():\n    go = E().start_workers\n    go()\n{lost}"
    ),
    "start-up of a worker": "class Worker:\n    def load_model(self):\n        {lost}",
    "start-up of what inherits from one": (
        "from x import CpuWorker as C\nclass X(C):\n    def load_model(self):\n        {lost}"
    ),
    "driving by a variable": (
        "from pkg import CpuWorker\ndef boot():\n    cpu = CpuWorker()\n    cpu.\\\n  start()\n{lost}"
    ),
    "driving by a function of a module that is called like a worker": (
        "from pkg.Worker \\\n import start\ndef boot():\n    start()\n{lost}"
    ),
    "building by its base": "from pkg import Worker\ndef boot(self):\n    Worker . __init__(self)\n{lost}",
    "start-up of what is called like a worker's process": (
        "class GpuWorkerProcess:\n    def __init__(self):\n        {lost}"
    ),
    "base by assignment": "import x\nBase = x.CpuWorker\nclass X(Base):\n    def initialize(self):\n        {lost}",
    "base by assignment, apart": (
        "import x\nBase = (  # its base\n x\n . CpuWorker)\nclass X(Base):\n    def boot(self):\n        {lost}"
    ),
    "base by assignment with a condition": (
        "import x\nBase = x.Other if x else x.CpuWorker\nclass X(Base):\n    def boot(self):\n        {lost}"
    ),
    "driving by super, as something is called": (
        "from x import CpuWorker as super\ndef boot():\n    super().start()\n{lost}"
    ),
    "base among others": (
        "import x\nclass X(\n    object,  # a class: more\n    x.CpuWorker,\n):\n    def boot(self):\n        {lost}"
    ),
    "said to be": "def act_now():  # keepcause: worker-init\n{lost}",
    "starting processes": (
        "from multiprocessing import Process\ndef go(f):\n    Process(\n\n  # what\n\n  target=f\n)\n{lost}"
    ),
    "a keyword behind a continuation": (
        "from multiprocessing import Process\ndef go(f):\n    Process(\\\n target=f)\n{lost}"
    ),
    "a keyword behind a form feed": "from multiprocessing import Process\ndef go(f):\n    Process(\ftarget=f)\n{lost}",
    "a keyword at the beginning of a line": (
        "from multiprocessing import Process\ndef go(f):\n    Process(\ntarget=f)\n{lost}"
    ),
    "a keyword before a comment": (
        "from multiprocessing import Process\ndef go(f):\n    Process(target  # what\n = f)\n{lost}"
    ),
    "a keyword behind a text that ends like a comment": (
        "from multiprocessing import Process\ndef go(f):\n    '''\n# '''; Process(target=f)\n{lost}"
    ),
    "a keyword in a file that begins with a comment": (
        "# what\nfrom multiprocessing import Process\ndef go(f):\n    Process(target=f)\n{lost}"
    ),
    "spawning by another name, beside another target": (
        "import torch.multiprocessing as mp\nstart = mp.spawn\ndef go(f, x):\n    start(f)\n    x.put(target=f)\n{lost}"
    ),
    "a list of functions": "from multiprocessing import Process\ndef go(f):\n    Process(target=[f][0])\n{lost}",
}
CHILDREN = {
    "a target": "from multiprocessing import Process as P\ndef run():\n{silent}P(None, target = run)\n",
    "a target of a dotted class": (
        "import multiprocessing as m\ndef run():\n{silent}m.Process(\n    target\n    =run,\n)\n"
    ),
    "run() of a process": "import multiprocessing as m\nclass A(m.Process):\n    def run(self):\n        {silent}",
    "of one with another name": (
        "from multiprocessing import Process as P\nclass A(P, object):\n    def run(self):\n        {silent}"
    ),
    "an actor": "from ray import remote as r\n@r\nclass A:\n    def __init__(self):\n        {silent}",
    "an actor's start": "import ray as rr\n@rr.remote(num_cpus=1)\nclass A:\n    def init_it(self):\n        {silent}",
    "a plugin": "from distributed import WorkerPlugin as W\nclass A(W):\n    def setup(self):\n        {silent}",
    "a worker of gunicorn": (
        "import gunicorn.workers.base as b\nclass A(b.Worker):\n    def load_wsgi(self):\n        {silent}"
    ),
    "run() of another kind of process": (
        "from billiard import Process as P\nclass A(P):\n    def run(self):\n        {silent}"
    ),
    "a step of celery": "from celery.bootsteps import Step as S\nclass A(S):\n    def start(self):\n        {silent}",
    "a worker of uvicorn": (
        "from uvicorn.workers import UvicornWorker as U\nclass A(U):\n    def load_wsgi(self):\n        {silent}"
    ),
    "a target of an own class": (
        "from multiprocessing import Process as P\nclass A(P): pass\ndef run():\n{silent}A(target=run)\n"
    ),
    "a target of a class that starts processes as it is built": (
        "import multiprocessing as m\nclass Group:\n    def __init__(self, target):\n        m.Process(target=target)\n"
        "def run():\n{silent}Group(target=run)\n"
    ),
    "a pool's start": (
        "from concurrent.futures import ProcessPoolExecutor as E\ndef run():\n{silent}E(initializer=run)\n"
    ),
    "a pool's start by a context": "def run(context):\n{silent}context.Pool(2, initializer=run)\n",
    "a pool's start by a function": (
        "from loky import get_reusable_executor as g\ndef run():\n{silent}g(initializer=run)\n"
    ),
    "a loader's start": (
        "from torch.utils.data import DataLoader as D\ndef run():\n{silent}D(1, worker_init_fn=run)\n"
    ),
    "a signal of celery": "from celery.signals import worker_init as w\n@w.connect\ndef go():\n{silent}",
    "a fork": "from os import fork\ndef go():\n    if not fork():\n        {silent}",
    "spawning": "from torch.multiprocessing import spawn\ndef go(rank):\n{silent}spawn(go, nprocs=2)\n",
    "a thread that is waited for": (
        "import threading\nclass A:\n    def __init__(self):\n"
        "        self.t = threading.Thread(target=self.go)\n        self.t.join()\n    def go(self):\n        {silent}"
    ),
    "one behind a function that is only text": (
        "import threading\nclass A:\n    def __init__(self):\n        self.help = '''\n    def other(): pass\n'''\n"
        "        self.t = threading.Thread(target=self.go)\n        self.t.join()\n    def go(self):\n        {silent}"
    ),
    "one behind a function within": (
        "import threading\nclass A:\n    def __init__(self):\n        def inner():\n            pass\n"
        "        self.t = threading.Thread(\n            target=self.go\n        )\n        self.t.join()\n"
        "    def go(self):\n        {silent}"
    ),
    "one in a block behind a function within": (
        "import threading\nclass A:\n    def __init__(self):\n        def inner(): pass\n        if inner:\n"
        "            threading.Thread(target=self.go)\n        self.t.join()\n    def go(self):\n        {silent}"
    ),
    "one in a list": (
        "import threading\nclass A:\n    def __init__(self):\n        self.all = [\n"
        " threading.Thread(target=self.go)]\n        self.t.join()\n    def go(self):\n        {silent}"
    ),
}


def written(place: str) -> str:
    for name, code in (("{lost}", LOST), ("{silent}", SILENT)):
        place = place.replace(f"        {name}", code.replace("    ", "        ", 1).replace("\n    ", "\n        "))
        place = place.replace(name, code)
    return place


def codes(path: Path) -> list[str]:
    settings = Settings(codes=frozenset(("KC101", "KC104")), evidence=Grade.POSSIBLE, single_file=True)
    report = Engine(settings).check(path)
    assert isinstance(report, FileReport)
    return [finding.code for finding in report.findings]


@pytest.mark.parametrize("place", [*PARENTS.values(), *CHILDREN.values()], ids=[*PARENTS, *CHILDREN])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_what_a_file_proves_alone_is_found(place: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "worker.py"
    path.write_text(written(place), newline=end)
    with unscreened():
        found = codes(path)
    assert found
    assert codes(path) == found


def test_a_module_may_be_part_of_what_it_needs(tmp_path: Path) -> None:
    package = tmp_path / "gunicorn" / "workers"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    path = package / "mine.py"
    path.write_text(written("from .base import Worker\nclass A(Worker):\n    def load_wsgi(self):\n        {silent}"))
    with unscreened():
        found = codes(path)
    assert codes(path) == found == ["KC104"]


@pytest.mark.parametrize(
    "code",
    [
        "",
        "def initialize(): pass\nreplace(item, target=[one, two])",
        (
            "import threading\n"
            "class A:\n  def go(self):\n    threading.Thread(target=self.run).start()\n  def run(self): pass"
        ),
        "# called with target=\nready = True\ntarget = find()",
        "def run(self, target=None): self._remote(target)",
        "class Worker: pass",
        "import ray\nremote = ray.get(x)",
        "import ray  # as remote code\nclass A:\n  def __init__(self): pass",
        "from x import ThreadPoolExecutor, init_log\ninit_log()",
        "import celery  # connects\nconnection = celery.Celery()",
        "# A Worker of x.\nfrom . import x\ndef go(): pass",
        "from x import ReplicatedLinear\nclass A(ReplicatedLinear):\n  def __init__(self): pass",
        "class MyWorker:\n  def go(self): pass",
        "change = Replacement(target=one)",
    ],
)
def test_others_are_not_parsed(code: str) -> None:
    assert not may_have_root(given(code))
    assert not may_have_child(given(code))
