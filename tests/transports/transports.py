"""Each transport as a function: a guarded start fails on its far side, and what arrives on this one is raised.

Imports the runtime tests' faults, and each transport's library only where it is used.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults import CAUSES, MESSAGE, RANK, double, guarded_start, start

from keepcause import checked_task, deferred_initializer, from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMEOUT = 60
CHECKPOINT = "torch's CheckpointException"
METHODS = ("fork", "spawn", "forkserver")


class TextArrived(Exception):
    """All that a transport delivers is a text."""


def _checkpoint_exception() -> BaseException:
    from torch.distributed.checkpoint.api import CheckpointException, _wrap_exception

    exc: BaseException = CheckpointException("load failed", {RANK: _wrap_exception(ValueError(MESSAGE))})
    return exc


CAUSES[CHECKPOINT] = BaseException, _checkpoint_exception


def fail(cause: str, *_: object) -> None:
    """Fail under a guard; further arguments are what a transport adds."""
    guarded_start(cause)


def fail_unguarded(cause: str) -> None:
    """Fail as an initializer that brings its own guard."""
    start(cause)


def caught(cause: str) -> BaseException:
    """Return the guard's error, raised."""
    try:
        guarded_start(cause)
    except BaseException as exc:
        return exc
    raise AssertionError("the start did not fail")


def send_by_pipe(conn: Any, cause: str) -> None:
    """Send the error over a Connection."""
    conn.send(caught(cause))


def pipe(method: str, cause: str) -> None:
    """multiprocessing.Pipe."""
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=send_by_pipe, args=(there, cause))
    process.start()
    there.close()
    try:
        raise here.recv()
    finally:
        process.join()


def send_by_queue(queue: Any, cause: str) -> None:
    """Put the error into a queue."""
    queue.put(caught(cause))


def queue(method: str, cause: str) -> None:
    """multiprocessing.Queue."""
    context: Any = multiprocessing.get_context(method)
    arrivals = context.Queue()
    process = context.Process(target=send_by_queue, args=(arrivals, cause))
    process.start()
    try:
        raise arrivals.get(timeout=TIMEOUT)
    finally:
        process.join()


def pool_apply(method: str, cause: str) -> None:
    """multiprocessing.Pool.apply."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        pool.apply(fail, (cause,))


def pool_map(method: str, cause: str) -> None:
    """multiprocessing.Pool.map."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        pool.map(fail, [cause] * 3)


def pool_initializer(method: str, cause: str) -> None:
    """A deferred initializer of multiprocessing.Pool."""
    initializer = deferred_initializer(fail_unguarded, rank=RANK)
    with multiprocessing.get_context(method).Pool(1, initializer, (cause,)) as pool:
        pool.apply(checked_task(double), (1,))


def executor_task(cause: str) -> None:
    """A task of ProcessPoolExecutor."""
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(fail, cause).result(TIMEOUT)


def executor_initializer(cause: str) -> None:
    """A deferred initializer of ProcessPoolExecutor."""
    from concurrent.futures import ProcessPoolExecutor

    initializer = deferred_initializer(fail_unguarded, rank=RANK)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=initializer, initargs=(cause,)) as pool:
        pool.submit(checked_task(double), 1).result(TIMEOUT)


def loky_task(cause: str) -> None:
    """A task of loky."""
    import loky

    with loky.ProcessPoolExecutor(1) as pool:
        pool.submit(fail, cause).result(TIMEOUT)


def loky_initializer(cause: str) -> None:
    """A deferred initializer of loky."""
    import loky

    initializer = deferred_initializer(fail_unguarded, rank=RANK)
    with loky.ProcessPoolExecutor(1, initializer=initializer, initargs=(cause,)) as pool:
        pool.submit(checked_task(double), 1).result(TIMEOUT)


def joblib_task(cause: str) -> None:
    """A task of joblib."""
    import joblib

    joblib.Parallel(n_jobs=2)(joblib.delayed(fail)(cause) for _ in range(2))


def fail_as_process(number: int, cause: str) -> None:
    """Fail as one of torch's processes."""
    guarded_start(cause)


def torch_spawn(cause: str) -> None:
    """torch.multiprocessing.spawn."""
    import torch.multiprocessing

    torch.multiprocessing.spawn(fail_as_process, (cause,), nprocs=1)


def elastic_record(cause: str) -> None:
    """The error file of torch elastic's record."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "error.json")
        code = (
            "from torch.distributed.elastic.multiprocessing.errors import record\n"
            f"import transports\nrecord(transports.fail)({cause!r})\n"
        )
        environment = os.environ | {"TORCHELASTIC_ERROR_FILE": str(file), "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL, timeout=TIMEOUT)
        report = json.loads(file.read_text())["message"]
        raise TextArrived(f"{report['message']}\n{report['extraInfo']['py_callstack']}")


class Items:
    """A data set each item of which fails."""

    def __init__(self, cause: str) -> None:
        self.cause = cause

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> None:
        guarded_start(self.cause)


def loader_initializer(cause: str) -> None:
    """worker_init_fn of torch's DataLoader."""
    from torch.utils.data import DataLoader

    options: dict[str, Any] = {"num_workers": 1, "multiprocessing_context": "fork"}
    list(DataLoader([1, 2], worker_init_fn=partial(fail, cause), **options))


def loader_item(cause: str) -> None:
    """An item of torch's DataLoader."""
    from torch.utils.data import DataLoader

    items: Any = Items(cause)
    list(DataLoader(items, num_workers=1, multiprocessing_context="fork"))


WORLD = 4


def gather_member(rank: int, store: str, everywhere: bool, cause: str, arrivals: Any) -> None:
    """Be one rank of a group whose rank 3 fails; rank 0 puts what it got, as text and as pickle, into the queue."""
    import pickle

    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    mine = caught(cause) if rank == RANK else None
    found: Any = [None] * WORLD
    if everywhere:
        dist.all_gather_object(found, mine)
    else:
        dist.gather_object(mine, found if rank == 0 else None, dst=0)
    if rank == 0:
        arrivals.put(pickle.dumps(found[RANK]))
    dist.barrier()
    dist.destroy_process_group()


def gloo(everywhere: bool, cause: str) -> None:
    """Objects gathered by torch.distributed over gloo, four ranks; a second hop brings the error from rank 0 here."""
    import pickle

    import torch.distributed  # noqa: F401 - before the fork, once for all ranks

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    context = multiprocessing.get_context("fork")
    arrivals = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        members = [
            context.Process(target=gather_member, args=(rank, f"{folder}/store", everywhere, cause, arrivals))
            for rank in range(WORLD)
        ]
        for member in members:
            member.start()
        arrived = arrivals.get(timeout=TIMEOUT)
        for member in members:
            member.join()
    raise pickle.loads(arrived)


def _ray() -> Any:
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    return ray


def ray_task(cause: str) -> None:
    """A task of ray."""
    ray = _ray()
    ray.get(ray.remote(fail).remote(cause), timeout=TIMEOUT)


class Actor:
    """Fails in its construction."""

    def __init__(self, cause: str) -> None:
        guarded_start(cause)

    def ping(self) -> None:
        """Be called."""


def ray_actor(cause: str) -> None:
    """An actor of ray that fails in its constructor."""
    ray = _ray()
    ray.get(ray.remote(Actor).remote(cause).ping.remote(), timeout=TIMEOUT)


_clients: list[Any] = []


def _dask() -> Any:
    import distributed

    if not _clients:
        cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
        _clients.append(distributed.Client(cluster))
    return _clients[0]


def dask_task(cause: str) -> None:
    """A task of dask."""
    _dask().submit(fail, cause, pure=False).result(TIMEOUT)


def dask_plugin(cause: str) -> None:
    """A worker plugin of dask that fails in its set-up."""
    import distributed

    class Plugin(distributed.WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            guarded_start(cause)

    _dask().register_plugin(Plugin(), name=cause)


def json_pipe(cause: str) -> None:
    """Lines of JSON on the standard output of a subprocess."""
    code = f"import sys, transports\ntransports.guarded_start({cause!r}, conn=sys.stdout)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    raise from_json(json.loads(done.stdout.splitlines()[-1])[-1])


def by_method(function: Callable[[str, str], None], name: str) -> Iterator[tuple[str, Callable[[str], None], str]]:
    """Yield a row for each way to start a process."""
    for method in METHODS:
        yield f"{name}, {method}", partial(function, method), "OMFR"


TRANSPORTS: list[tuple[str, Callable[[str], None], str]] = [
    *by_method(pipe, "multiprocessing Pipe"),
    *by_method(queue, "multiprocessing Queue"),
    *by_method(pool_apply, "Pool apply"),
    *by_method(pool_map, "Pool map"),
    *by_method(pool_initializer, "Pool initializer, deferred"),
    ("ProcessPoolExecutor task", executor_task, "OMFR"),
    ("ProcessPoolExecutor initializer, deferred", executor_initializer, "OMFR"),
    ("loky task", loky_task, "OMFR"),
    ("loky initializer, deferred", loky_initializer, "OMFR"),
    ("joblib task", joblib_task, "OMFR"),
    ("torch.multiprocessing.spawn", torch_spawn, "MFr"),
    ("torch elastic record file", elastic_record, "MFr"),
    ("DataLoader worker_init_fn", loader_initializer, "MF"),
    ("DataLoader item", loader_item, "MF"),
    ("gloo gather_object, 4 ranks", partial(gloo, False), "OMFR"),
    ("gloo all_gather_object, 4 ranks", partial(gloo, True), "OMFR"),
    ("ray task", ray_task, "OMFR"),
    ("ray actor's constructor", ray_actor, "MFr"),
    ("dask task", dask_task, "OMFR"),
    ("dask worker plugin's set-up", dask_plugin, "OMFR"),
    ("JSON over a subprocess pipe", json_pipe, "OMFR"),
]
"""Name, function, and the letters that it has to reach; see matrix.py."""
