"""Runs learned laws: conditions over a launch's figures, kept as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.expr import ParseError, evaluate, parse
from cake_tui.ir.laws._law import LearnedLaw
from cake_tui.ir.laws._registers import registers_of
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.walk import walk_body
from cake_tui.model.diagnostic import Diagnostic


def check_learned(subject: Subject, laws: Iterable[LearnedLaw]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every learned law and launch where its condition holds; a broken law is silent."""
    for law in laws:
        try:
            condition = parse(law.condition)
        except ParseError:
            continue
        for index in range(len(subject.program.launches)):
            figures = {**subject.numbers, **figures_of(subject, index)}
            try:
                holds = evaluate(condition, figures)
            except ValueError:
                continue
            if holds:
                used = ", ".join(
                    f"{name} = {value}" for name, value in figures.items() if name in law.condition.split()
                )
                yield subject.refuse_launch(
                    law.name, index, law.field, used or law.condition, law.needed, nearest=law.nearest
                )


def figures_of(subject: Subject, index: int) -> dict[str, int | float]:
    """Return what a learned law may ask of a launch, by name."""
    launch = subject.program.launches[index]
    stages = [
        subject.number(statement.stages)
        for statement in walk_body(launch.body)
        if isinstance(statement, ir.For) and statement.stages is not None
    ]
    return {
        "threads": subject.threads(launch),
        "smem_bytes": subject.smem_bytes(index),
        "registers": max(registers_of(subject, index).values(), default=0),
        "stages": max(stages, default=1),
        "launches": len(subject.program.launches),
        "blocks": math.prod(subject.blocks(launch)),
    }
