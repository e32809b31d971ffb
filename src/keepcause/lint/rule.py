"""What a rule is, and the registry of all rules; standard library only."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import pkgutil
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from keepcause.lint.finding import Finding, Fix

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence

    from keepcause.lint.noqa import Suppressions
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed


IN_A_TEST = "a test may mean what it says"
"""Why what a rule finds in a test has no fix."""


class Where(enum.Enum):
    """Which findings of a rule count."""

    EVERYWHERE = "everywhere"
    WORKER_INIT = "on worker-init paths"
    """Only those on a worker-init path."""
    WORKER_CHILD = "in what a launch site runs in a worker"
    """Only those in a function that a launch site runs in a worker, or one call below it."""


class Rule:
    """One kind of fault: a pure function of one file's source.

    A subclass's docstring is its documentation. Its first line sums the rule up; the headings `What it does`, `Why it
    is bad`, `Bad`, `Good`, `Fix safety` and, where there are any, `Options` follow.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    message: ClassVar[str]
    where: ClassVar[Where]
    unless: ClassVar[str] = ""
    """The code of a rule that, where it finds the same statement, makes this rule's finding superfluous."""
    on_by_default: ClassVar[bool] = True
    structured: ClassVar[bool] = False
    """Whether `fix --structured` turns the rule on and makes its fixes."""
    reviews: ClassVar[bool] = False
    """Whether the rule looks at the comments that keep findings quiet; see `review`."""
    fixes: ClassVar[str]
    """What the fix is, in a few words; `none` where the rule has none."""
    nodes: ClassVar[tuple[type[ast.AST], ...]]

    def glance(self, file: Unparsed) -> bool:
        """Whether the file may hold a finding, as a look at its bytes tells; must never be wrongly false."""
        return True

    def possible(self, file: Unparsed) -> bool:
        """The same of a file that has passed `glance`, where it takes parsing single statements to tell."""
        return True

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """The findings at `node`, which is one of `nodes`."""
        raise NotImplementedError

    def review(
        self, source: Source, suppressions: Suppressions, found: Sequence[Finding], checked: frozenset[str]
    ) -> Iterator[Finding]:
        """What there is to say of comments that keep findings quiet.

        `found` is all that the rules `checked` find in the file, suppressed or too unsure to be reported as well.
        """
        yield from ()

    def found(
        self,
        node: ast.stmt | ast.ExceptHandler,
        source: Source,
        fix: Fix | str,
        message: str = "",
        raised: str = "",
    ) -> Finding:
        """A finding that reports and covers the statement `node`; `fix` may be the reason why there is none."""
        span = source.span(node)
        function = source.function(node)
        return Finding(
            code=self.code,
            message=message or self.message,
            span=span,
            statement=span,
            function=function.lineno if function else 0,
            fix=fix if isinstance(fix, Fix) else None,
            no_fix=fix if isinstance(fix, str) else "",
            raised=raised,
        )

    def found_at_head(
        self, node: ast.stmt | ast.ExceptHandler, source: Source, no_fix: str, message: str, raised: str = ""
    ) -> Finding:
        """A finding that reports and covers the first line of the compound statement `node`."""
        finding = self.found(node, source, no_fix, message, raised)
        start = finding.span
        end = len(source.lines[start.line - 1].rstrip())
        head = replace(start, end_line=start.line, end_column=max(start.column + 1, end))
        return replace(finding, span=head, statement=head)

    @classmethod
    def documentation(cls) -> str:
        """What the docstring says, in Markdown."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def page(cls) -> str:
        """The rule's page in Markdown: title, sum, what is true of it by default, and the rest of its documentation."""
        summary, _, rest = cls.documentation().partition("\n\n")
        default = "on" if cls.on_by_default else "off"
        facts = f"Reported: {cls.where.value}. Default: {default}. Fix: {cls.fixes}."
        return f"# {cls.name} ({cls.code})\n\n{summary}\n\n{facts}\n\n{rest}\n"


@functools.cache
def _names() -> tuple[str, ...]:
    """Of the modules with rules: `kc101_raise_from_none`."""
    from keepcause.lint import rules

    return tuple(sorted(module.name for module in pkgutil.iter_modules(rules.__path__)))


def all_codes() -> tuple[str, ...]:
    """The code of every rule: its module's name begins with it, so that no rule need be loaded."""
    return tuple(name.partition("_")[0].upper() for name in _names())


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule in the folder `rules`, by code."""
    modules = [importlib.import_module(f"keepcause.lint.rules.{name}") for name in _names()]
    classes = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__
    }
    return tuple(sorted((rule() for rule in classes), key=lambda rule: rule.code))


def structured_codes() -> tuple[str, ...]:
    """The codes of the rules that `fix --structured` turns on."""
    return tuple(rule.code for rule in all_rules() if rule.structured)
