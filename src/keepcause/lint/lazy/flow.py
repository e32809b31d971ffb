"""In which order the names of one scope are bound and used, on every path; imports the scopes and events only."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepcause.lint.binding import ComprehensionNode
from keepcause.lint.lazy.events import Event, What, backward, binds, bound_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from keepcause.lint.binding import Scope
    from keepcause.lint.scope import Scopes

_MAY_RAISE = (
    *(ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare),
    *(ast.Await, ast.Yield, ast.YieldFrom, ast.JoinedStr),
)
_DEEPEST_COPIES = 4


@dataclass(slots=True)
class _Loop:
    breaks: list[Event] = field(default_factory=list)
    continues: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class _Finally:
    jumps: dict[type[ast.stmt], list[Event]] = field(default_factory=dict)


class Flow:
    """The events of one module, class or function body.

    Where an exception may be caught, every event leads to the handlers, and every `with` may swallow it: a path that is
    here may not exist, but none that exists is missing.
    """

    def __init__(self, scope: Scope, scopes: Scopes) -> None:
        self.events: dict[ast.AST, list[Event]] = {}
        """The events of each node; more than one where it stands in a `finally`."""
        self.scope = scope
        builder = _Builder(scope, scopes, self.events)
        self.falls_through = builder.falls_through
        """Whether the end of the body may be reached."""

    def reaching(self, event: Event, name: str) -> list[Event]:
        """The bindings of `name` that may be the last before `event`."""
        return [each for each in backward(event, lambda seen: binds(seen, name)) if binds(each, name)]


class _Builder:
    def __init__(self, scope: Scope, scopes: Scopes, events: dict[ast.AST, list[Event]]) -> None:
        self._scope = scope
        self._scopes = scopes
        self._events = events
        self._ends: list[Event] = []
        """The events that the next one follows."""
        self._raisers: list[list[Event]] = []
        """For each place around that catches exceptions, the events that may raise into it."""
        self._around: list[_Loop | _Finally] = []
        self._copies = 0
        node = scope.node
        self._emit(What.ACT, node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            variadic = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
            for parameter in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variadic]:
                self._emit(What.BIND, parameter)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            self._block(node.body)
        self.falls_through = bool(self._ends)

    def _emit(self, what: What, node: ast.AST) -> None:
        event = Event(what, node)
        self._events.setdefault(node, []).append(event)
        for end in self._ends:
            end.after.append(event)
            event.before.append(end)
        self._ends = [event]
        if what is not What.BIND:
            for raisers in self._raisers:
                raisers.append(event)

    def _is_own(self, name: str, node: ast.AST) -> bool:
        """Whether `name` at `node` is a variable of this scope."""
        own = self._scope.bindings.get(name)
        return own is not None and self._scopes.lookup(name, self._scopes.of[node]) is own

    # Statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                self._expression(test)
                self._branches([lambda: self._block(body), lambda: self._block(orelse)])
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(node)
            case ast.Try() | ast.TryStar():
                self._try(node)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                self._with(items, body)
            case ast.Match(subject=subject, cases=cases):
                self._expression(subject)
                self._cases(cases)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._definition(node)
            case ast.Break() | ast.Continue() | ast.Return() | ast.Raise():
                self._leave(node)
            case ast.Assign(targets=targets, value=value):
                self._expression(value)
                for target in targets:
                    self._expression(target)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._expression(value)
                    self._expression(target)
            case ast.AugAssign(target=target, value=value):
                self._augmented(target, value)
            case ast.Import() | ast.ImportFrom():
                self._emit(What.ACT, node)
                self._emit(What.BIND, node)
            case ast.Assert(test=test, msg=message):
                self._expression(test)
                self._branches([lambda: self._failed_assert(node, message), lambda: None])
            case _:
                for child in ast.iter_child_nodes(node):
                    self._expression(child)

    def _failed_assert(self, node: ast.Assert, message: ast.expr | None) -> None:
        if message is not None:
            self._expression(message)
        self._emit(What.ACT, node)
        self._ends = []

    def _augmented(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if self._is_own(target.id, target):
                self._emit(What.USE, target)
            self._expression(value)
            self._name(target)
        else:
            self._expression(target)
            self._expression(value)

    def _branches(self, branches: Sequence[Callable[[], None]]) -> None:
        start, ends = self._ends, []
        for branch in branches:
            self._ends = start
            branch()
            ends += self._ends
        self._ends = list(dict.fromkeys(ends))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        if not isinstance(node, ast.While):
            self._expression(node.iter)
        self._emit(What.TURN, node)
        [head] = self._ends
        endless = False
        if isinstance(node, ast.While):
            self._expression(node.test)
            endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        decided = self._ends
        loop = _Loop()
        self._around.append(loop)
        if not isinstance(node, ast.While):
            self._expression(node.target)
        self._block(node.body)
        self._around.pop()
        for end in dict.fromkeys([*self._ends, *loop.continues]):
            end.after.append(head)
            head.before.append(end)
        self._ends = [] if endless else decided
        self._block(node.orelse)
        self._ends = list(dict.fromkeys([*self._ends, *loop.breaks]))

    def _leave(self, node: ast.Break | ast.Continue | ast.Return | ast.Raise) -> None:
        for child in ast.iter_child_nodes(node):
            self._expression(child)
        self._emit(What.ACT, node)
        if not isinstance(node, ast.Raise):
            self._jump(type(node), self._ends)
        self._ends = []

    def _jump(self, kind: type[ast.stmt], ends: list[Event]) -> None:
        for around in reversed(self._around):
            if isinstance(around, _Finally):
                around.jumps.setdefault(kind, []).extend(ends)
                return
            if kind is not ast.Return:
                (around.breaks if kind is ast.Break else around.continues).extend(ends)
                return

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        if not node.finalbody:
            self._guarded(node)
            return
        last = _Finally()
        self._around.append(last)
        raisers: list[Event] = []
        self._raisers.append(raisers)
        self._guarded(node)
        self._raisers.pop()
        self._around.pop()
        normal = self._ends
        self._ends = list(dict.fromkeys([*raisers, *(end for ends in last.jumps.values() for end in ends)]))
        if self._copies == _DEEPEST_COPIES:  # each copy doubles what is inside it
            self._ends = list(dict.fromkeys([*normal, *self._ends]))
            self._block(node.finalbody)
            normal = self._ends
        else:
            self._copies += 1
            self._block(node.finalbody)
            abrupt, self._ends = self._ends, normal
            self._block(node.finalbody)
            normal, self._ends = self._ends, abrupt
            self._copies -= 1
        for raisers in self._raisers:
            raisers += self._ends
        for kind in last.jumps:
            self._jump(kind, self._ends)
        self._ends = normal

    def _guarded(self, node: ast.Try | ast.TryStar) -> None:
        start = self._ends
        raisers: list[Event] = []
        self._raisers.append(raisers)
        self._block(node.body)
        self._raisers.pop()
        done = self._ends
        caught = raisers or start
        self._ends = done
        self._block(node.orelse)
        ends = self._ends
        for handler in node.handlers:
            self._ends = list(caught)
            if handler.type is not None:
                self._expression(handler.type)
            if handler.name is not None:
                self._emit(What.BIND, handler)
            self._block(handler.body)
            ends = [*ends, *self._ends]
        self._ends = list(dict.fromkeys(ends))

    def _with(self, items: Sequence[ast.withitem], body: Sequence[ast.stmt]) -> None:
        for item in items:
            self._expression(item.context_expr)
            self._emit(What.ACT, item)
            if item.optional_vars is not None:
                self._expression(item.optional_vars)
        raisers: list[Event] = []
        self._raisers.append(raisers)
        self._block(body)
        self._raisers.pop()
        self._ends = list(dict.fromkeys([*self._ends, *raisers]))

    def _cases(self, cases: Sequence[ast.match_case]) -> None:
        done: list[Event] = []
        for case in cases:
            before = self._ends
            for part in ast.walk(case.pattern):
                if (name := bound_name(part)) and self._is_own(name, part):
                    self._emit(What.BIND, part)
            if case.guard is not None:
                self._expression(case.guard)
            not_taken = [*before, *(self._ends if case.guard is not None else [])]
            self._block(case.body)
            done += self._ends
            bare = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
            self._ends = [] if bare else list(dict.fromkeys(not_taken))
        self._ends = list(dict.fromkeys([*done, *self._ends]))

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._deferred(node)
        self._emit(What.ACT, node)
        if self._is_own(node.name, node):
            self._emit(What.BIND, node)

    # Expressions: iterative but for branches, so that long chains are no problem.

    def _expression(self, top: ast.AST) -> None:
        pending: list[tuple[ast.AST, bool]] = [(top, False)]
        while pending:
            node, evaluated = pending.pop()
            if evaluated:
                self._emit(What.ACT, node)
                continue
            match node:
                case ast.Name():
                    self._name(node)
                case ast.BoolOp(values=[first, *others]):
                    self._expression(first)
                    for other in others:
                        self._branches([lambda other=other: self._expression(other), lambda: None])  # type: ignore[misc]
                case ast.IfExp(test=test, body=body, orelse=orelse):
                    self._expression(test)
                    self._branches([lambda: self._expression(body), lambda: self._expression(orelse)])
                case ast.Lambda():
                    self._deferred(node)
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    self._expression(node.generators[0].iter)
                    self._deferred(node)
                    self._emit(What.TURN, node)
                case ast.NamedExpr(target=target, value=value):
                    self._expression(value)
                    self._name(target)
                case _:
                    if isinstance(node, _MAY_RAISE):
                        pending.append((node, True))
                    pending += [(child, False) for child in reversed(list(ast.iter_child_nodes(node)))]

    def _name(self, node: ast.Name) -> None:
        if self._is_own(node.id, node):
            self._emit(What.USE if isinstance(node.ctx, ast.Load) else What.BIND, node)

    def _deferred(self, node: ast.AST) -> None:
        """What a nested function, class or comprehension reads or binds of this scope, where it is made."""
        first = node.generators[0].iter if isinstance(node, ComprehensionNode) else None
        pending = list(ast.iter_child_nodes(node))[::-1]
        while pending:
            part = pending.pop()
            if part is first:
                continue
            if isinstance(part, ast.Name) and self._is_own(part.id, part):
                self._emit(What.USE if isinstance(part.ctx, ast.Load) else What.BIND, part)
            if isinstance(part, _MAY_RAISE):
                self._emit(What.ACT, part)
            pending += list(ast.iter_child_nodes(part))[::-1]
