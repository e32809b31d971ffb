"""Whatever the source, all real rules and repairs together leave a file that another judge takes for it."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge import judge
from test_any_source import files, mutated

from keepcause.codemod.apply import repair
from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.finding import Finding, Grade, Safety
from keepcause.lint.rule import all_rules
from keepcause.lint.source import Source, SourceError

EVERY_RULE = Settings(codes=frozenset(rule.code for rule in all_rules()), evidence=Grade.POSSIBLE, single_file=True)
WORKER = """\
{head}class Worker:
    def __init__(self, rank, model, path):
        self.rank = rank
        saved = torch.load(path)
        {keys} = {difference}
        try:
            f(*{keys})
        {header}
            raise {raised}

    def init_device(self, local_rank):
        {keys} = (a for a in local_rank)
        raise RuntimeError(
            {text},{comment}
        )
"""
HEADS = ["", "import torch\n", "'''Doc.'''\n", "from __future__ import annotations\n", "list = 1\n"]
TEXTS = [
    "f'{{{0}}}'",
    'f"{{{0}=}}"',
    "'a'\n            'b'",
    "', '.join({0})",
    'f"{{(a for a in {0})}}"',
    "'a' + str({0})",
]
DIFFERENCES = ["set({}) - set({})", "[k for k in {} if k not in {}]", "{}.keys() - {}.keys()", "f({}, {})"]


@st.composite
def workers(draw: st.DrawFn) -> bytes:
    """A worker's start that raises in the ways that the rules of worker-init paths and checkpoints look at."""
    keys = draw(st.sampled_from(["missing", "unexpected", "e", "rank"]))
    text = draw(st.sampled_from(TEXTS)).format(keys)
    raised = f"{draw(st.sampled_from(['RuntimeError', 'Exception', 'ValueError', 'e']))}({text})"
    sides = draw(st.permutations(["saved", "model.state_dict()"]))
    filled = WORKER.format(
        head=draw(st.sampled_from(HEADS)),
        keys=keys,
        difference=draw(st.sampled_from(DIFFERENCES)).format(*sides),
        header=draw(st.sampled_from(["except:", "except X:", "except X as e:", "except (X, Y):  # why"])),
        raised=raised + draw(st.sampled_from(["", " from None", " from e", " from None ; pass"])),
        text=text,
        comment=draw(st.sampled_from(["", "  # why"])),
    )
    return filled.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"]))).encode()


def lint(data: bytes) -> list[Finding]:
    return lint_single_file(Source(data, "worker.py"), EVERY_RULE)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=workers() | workers() | mutated() | files())
def test_every_rule(data: bytes) -> None:
    try:
        source = Source(data, "worker.py")
    except SourceError:
        return
    found = lint(data)
    result = repair(source, found, allowed=frozenset(Safety), relint=lint)
    assert result.failed == ()
    judge(data, result.data, {edit.statement for each in found if each.fix for edit in each.fix.edits})
    again = repair(Source(result.data, "worker.py"), lint(result.data), allowed=frozenset(Safety), relint=lint)
    assert (again.data, again.applied) == (result.data, ())
