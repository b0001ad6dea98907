"""Shapes from the command line: any size from 1, the rest keeps its default, what cannot be is one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_tui import kernels
from cake_tui.errors import UserError
from cake_tui.model.problem import Shape

DEFAULT = Shape((("M", 512), ("N", 512), ("K", 512)))


@given(st.integers(1, 2**30), st.integers(1, 2**30), st.integers(1, 2**30))
def test_any_sizes_are_read_in_the_kernels_order(m: int, n: int, k: int) -> None:
    assert kernels.override(f"K={k}, N = {n},M={m}", DEFAULT).sizes == (("M", m), ("N", n), ("K", k))


def test_sizes_left_out_keep_their_default() -> None:
    assert kernels.override("K=17", DEFAULT).text == "M=512,N=512,K=17"


WRONG = [
    ("M=0", 'M: found "0", allowed: a whole number from 1'),
    ("M=-4", 'M: found "-4"'),
    ("M=1e3", 'M: found "1e3"'),
    ("M=1.0", 'M: found "1.0"'),
    ("M=", 'M: found ""'),
    ("M=99999999999", "1 to 1073741824"),
    ("M=" + "9" * 9000, "1 to 1073741824"),
    ("M=\u0663", "allowed: a whole number"),
    ("m=4", 'no size "m" (did you mean "M"?); this kernel has M, N, K'),
    ("L=4", 'no size "L"'),
    ("M=4,M=5", "M is given twice"),
    ("", "allowed: M=512,N=512,K=512"),
    ("512,512,512", "allowed: M=512,N=512,K=512"),
    ("M=4,,N=3", "allowed: M=512,N=512,K=512"),
    ("M=4;N=3", "allowed: a whole number"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_shape_is_one_line(text: str, said: str) -> None:
    with pytest.raises(UserError) as found:
        kernels.override(text, DEFAULT)
    assert str(found.value).startswith("--shape: ")
    assert said in str(found.value)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 300


@given(st.text(max_size=30) | st.text(alphabet="MNK=,0123 \n", max_size=20))
def test_any_text_is_a_shape_or_the_users_mistake(text: str) -> None:
    try:
        shape = kernels.override(text, DEFAULT)
    except UserError as error:
        message = str(error)
    else:
        message = shape.text
    assert "\n" not in message


def test_shapes_replace_the_kernels_own_and_equal_ones_are_one() -> None:
    problem = kernels.load("matmul_bias_relu", target="c", shapes=["M=1,N=1,K=1", "M=33,N=7,K=129", "M=1,N=1,K=1"])
    assert [shape.text for shape in problem.shapes] == ["M=1,N=1,K=1", "M=33,N=7,K=129"]


TOO_LARGE = [
    ("M=100000,N=100000", "buffer y has 10000000000 elements; at most 2147483647"),
    ("M=2000000,N=1000,K=1000000", "buffer a has"),
]


@pytest.mark.parametrize(("shape", "said"), TOO_LARGE)
def test_what_an_index_cannot_reach_is_refused(shape: str, said: str) -> None:
    with pytest.raises(UserError, match=f"^--shape: .*{said}"):
        kernels.load("matmul_bias_relu", target="c", shapes=[shape])


def test_odd_and_lopsided_shapes_are_fine() -> None:
    for shape in ("M=1,N=1,K=1000000", "M=1000003,N=1,K=7", "M=31,N=1023,K=511", "M=46340,N=46340,K=3"):
        assert kernels.load("matmul_bias_relu", target="c", shapes=[shape]).shapes[0].text == shape
