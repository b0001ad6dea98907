"""Expressions: one parser, one printed form, exact arithmetic, errors that say where and what."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_tui.ir.expr import (
    Binary,
    Call,
    EvaluationError,
    Expr,
    Name,
    Number,
    ParseError,
    Ref,
    Span,
    Unary,
    evaluate,
    evaluate_bool,
    evaluate_int,
    names_in,
    parse,
    show,
    substitute,
)

NAMES = {"M": 512, "N": 513, "K": 17, "BN": 32, "x": -0.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2*M*N*K", 2 * 512 * 513 * 17),
        ("ceil(N / BN)", 17),
        ("floor(N/BN)", 16),
        ("N % BN", 1),
        ("4 * (BN + K) * 16", 4 * 49 * 16),
        ("1/sqrt(K)", 17**-0.5),
        ("M/BN", 16),
        ("-M + 2", -510),
        ("10 - 4 - 3", 3),
        ("2 - -3", 5),
        ("min(M, N, K)", 17),
        ("max(M, N, K)", 513),
        ("select(M < N, 1, 2)", 1),
        ("BN * BN <= 1024 and not M == N", True),
        ("M > N or M != 512", False),
        ("relu(x)", 0.0),
        ("abs(x)", 0.5),
        ("tanh(x)", math.tanh(-0.5)),
        ("gelu_erf(x)", -0.5 * 0.5 * (1 + math.erf(-0.5 / math.sqrt(2)))),
        ("gelu_tanh(x)", -0.25 * (1 + math.tanh(math.sqrt(2 / math.pi) * (-0.5 + 0.044715 * -0.125)))),
        ("ceil((10000000000000000000 + 1)/1)", 10**19 + 1),
    ],
)
def test_values_agree_with_arithmetic_done_by_hand(text: str, value: float) -> None:
    assert evaluate(parse(text), NAMES) == pytest.approx(value, rel=1e-12)
    assert isinstance(evaluate(parse(text), NAMES), type(value))


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "a number, a name or '('"),
        ("1 +", 4, "a number, a name or '('"),
        ("a b", 3, "the end of the expression"),
        ("(1", 3, "')'"),
        ("f(1)", 1, "one of relu"),
        ("relu()", 6, "a number, a name or '('"),
        ("relu(1, 2)", 10, "1 argument"),
        ("min(1)", 6, "at least 2 arguments"),
        ("a[1", 4, "']'"),
        ("a < b < c", 7, "'and' between two comparisons"),
        ("1 $ 2", 3, "a name, a number or an operator"),
        ("é", 1, "a name, a number or an operator"),
        ("__import__('os')", 12, "a name, a number or an operator"),
        ("1" * 40, 1, "at most 30 characters"),
        ("(" * 60 + "1" + ")" * 60, 51, "at most 50 levels"),
        ("-" * 60 + "1", 51, "at most 50 levels"),
        ("+".join("1" * 300), 252, "at most 250 operations"),
        ("1e999", 1, "a float64"),
        ("x" * 5000, 4000, "at most 4000"),
    ],
)
def test_a_mistake_is_named_with_its_column(text: str, column: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Q", "no value for Q; known names: BN, K, M, N, x"),
        ("1/(M - M)", "1/(M - M)"),
        ("M % 0", "M%0"),
        ("sqrt(x)", "sqrt(x)"),
        ("log(0)", "log(0)"),
        ("exp(1000)", "exp(1000)"),
        ("acc[M]", "acc is a buffer"),
        ("*".join(["1000000000000000000000"] * 20), "too large"),
    ],
)
def test_an_expression_without_a_value_says_which(text: str, said: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(said)):
        evaluate(parse(text), NAMES)


def test_whole_numbers_and_conditions_are_told_apart() -> None:
    assert evaluate_int(parse("M/BN"), NAMES) == 16
    assert evaluate_bool(parse("M < N"), NAMES) is True
    with pytest.raises(EvaluationError, match=r"N/BN is 16\.03125, not a whole number"):
        evaluate_int(parse("N/BN"), NAMES)
    with pytest.raises(EvaluationError, match="M is the number 512, not a condition"):
        evaluate_bool(parse("M"), NAMES)
    with pytest.raises(EvaluationError):
        evaluate_int(parse("M < N"), NAMES)


def test_bare_names_of_buffers_become_references() -> None:
    assert parse("relu(acc + bias[n])", {"acc", "bias"}) == Call(
        "relu", (Binary("+", Ref("acc"), Ref("bias", (Name("n"),))),)
    )
    assert names_in(parse("acc + bias[n + 1]", {"acc"})) == {"n"}


def test_spans_name_the_coordinate() -> None:
    tile = parse("b[k, n in 4*p +: NR, :]")
    assert isinstance(tile, Ref)
    assert tile.indices[1] == Span(parse("4*p"), Name("NR"), "n")
    assert show(tile) == "b[k, n in 4*p +: NR, :]"


def test_substitution_reaches_indices() -> None:
    assert (
        show(substitute(parse("a[k, m in s +: 4]*k"), {"k": Number(3), "s": parse("t*4")})) == "a[3, m in t*4 +: 4]*3"
    )


_LEAVES = st.one_of(
    st.builds(Number, st.integers(0, 10**9)),
    st.builds(Number, st.floats(0, 1e9, allow_nan=False)),
    st.builds(Name, st.sampled_from(["M", "n", "k0", "_x"])),
)


def _wider(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    spans = st.builds(Span, inner, inner, st.sampled_from(["", "n"]))
    return st.one_of(
        st.builds(Unary, st.sampled_from(["-", "not"]), inner),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "%", "<", "==", "and", "or"]), inner, inner),
        st.builds(Call, st.just("select"), st.tuples(inner, inner, inner)),
        st.builds(Ref, st.just("a"), st.tuples(inner, spans)),
    )


@given(st.recursive(_LEAVES, _wider, max_leaves=12))
def test_every_tree_prints_to_a_text_that_parses_back_to_it(expr: Expr) -> None:
    text = show(expr)
    assert parse(text) == expr
    assert show(parse(text)) == text
