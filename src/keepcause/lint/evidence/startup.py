"""The words of worker start-up: which names make a function a root, and which cut a path; standard library only."""

from __future__ import annotations

import re

STARTUP_NAME = re.compile(
    r"""_*(?:
        init(?:ialize)?_(?:device|worker|process|executor|process_group|distributed)s?
      | \w*wait\w*ready\w*
      | load_weights
      | (?:on_)?startup
    )""",
    re.VERBOSE,
)
"""Names that mean start-up in any class or module."""

WAITING = r"wait\w{0,60}ready"
"""What is in every name of `WAITING_NAME`."""
WAITING_NAME = re.compile(rf"_*{WAITING}\w*")
"""Names of what waits until something is ready: who calls it is a parent at start-up."""

WORKER_STARTUP_NAME = re.compile(
    r"""_*(?:
        init_\w+ | initiali[sz]e\w* | load_\w*model\w* | \w*start_?up\w* | boot\w* | ready
      | wait_(?:for|until)_(?:\w+_)?(?:
            (?:start|launch|init|boot|regist|connect|health|server|addr|model)\w*
          | workers? | actors? | replicas? | engines? | masters? | leaders? | peers? | ports? | clusters?
          | nodes? | ranks? | gpus? | devices? | stores? | rendezvous
          | ready | up | alive | live | online | available | running | loaded
        )
    )""",
    re.VERBOSE,
)
"""Names that mean start-up in a class that is a worker, an executor or an actor; elsewhere `ready` asks a question."""

DRIVING_NAME = re.compile(
    r"_*(?:start(?:_(?:up|workers?|actors?|process(?:es)?|training|replicas?))?|launch_\w+|spawn_\w+)"
)
"""Names of methods by which a parent starts a worker or executor; so are `WORKER_STARTUP_NAME`'s."""

WORKER_ENDINGS = tuple(
    rf"{word}(?:Base|Impl|Proc|Process|V[0-9]+)?"
    for word in ("Worker", "Executor(?<!ThreadPoolExecutor)", "Actor", "Replica")
)
"""How the names of `WORKER_CLASS` end; the workers of a pool of threads are no processes."""
WORKER_CLASS = re.compile(rf"(?:\w*[a-z0-9_])?(?:{'|'.join(WORKER_ENDINGS)})")
"""Names of classes whose instances are workers or drive them; evidence only together with a start-up method's name."""

BOOT_HOOK = re.compile(
    r"celery\.signals\.(?:worker_process_init|worker_init|celeryd_init|celeryd_after_setup)\.connect(?:\(\))?"
)
"""Decorators that make a function run while a worker starts."""

PLUGIN_CLASS = re.compile(
    r"(?:distributed(?:\.\w+)*|dask\.distributed)\.(?:WorkerPlugin|NannyPlugin)"
    r"|gunicorn\.workers(?:\.\w+)*\.\w*Worker|uvicorn\.workers\.\w*Worker|celery\.bootsteps\.\w*Step"
)
"""Base classes whose `PLUGIN_HOOK` methods run while a worker starts."""

PLUGIN_MODULES = {"Plugin": ("distributed",), "Worker": ("gunicorn", "uvicorn"), "Step": ("celery",)}
"""How the names of `PLUGIN_CLASS` end, and a word of each module that they come from."""

PLUGIN_HOOK = re.compile(r"setup|init_process|load_wsgi|create|start")

SERVING_NAME = re.compile(
    r"""_*(?:
        (?:a?serve|handle|dispatch|process|poll|execute|forward|generate|predict|infer|submit|fetch|validate|parse
          |coerce|shutdown|shut_down|close|teardown|tear_down|stop|terminate|kill|cleanup|abort|cancel|drain|reload
          |reconfigure|decode|encode|serialize|deserialize|format|redact|step|train|evaluate)(?:_\w+)?
      | (?!init)\w*_(?:request|requests|loop|step|batch|tasks?|outputs?|responses?|messages?)
      | main_loop | run_\w*loop | run_for\w+
      | __(?:a?exit|del|getattr|getattribute|setattr|getitem|contains|iter|next|anext|aiter|len|repr|str|eq|hash|reduce
          |reduce_ex|getstate|setstate|await|format|bool)__
    )(?:_?sync|_?async)?""",
    re.VERBOSE,
)
"""Names of what runs per request, per step, at the end or as a language protocol: a path ends there."""


def is_startup(name: str) -> bool:
    """Whether a function is one of start-up by its name, if only in the right class."""
    return any(pattern.fullmatch(name) for pattern in (STARTUP_NAME, WAITING_NAME, WORKER_STARTUP_NAME))
