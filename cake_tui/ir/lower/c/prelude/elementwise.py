"""Maps of one element that need no exponential; a NaN goes in and comes out."""

from __future__ import annotations

_LIBRARY = {
    "exp": "exp", "log": "log", "tanh": "tanh", "erf": "erf", "sin": "sin", "cos": "cos", "floor": "floor",
    "ceil": "ceil", "sqrt": "sqrt", "abs": "fabs",
}  # fmt: skip


def _scalar(name: str) -> str:
    return f"static inline $E {name}_$S($E x) {{ return {_LIBRARY[name]}$f(x); }}\n"


def _lanes(name: str) -> str:
    return (
        f"static inline $V {name}_$S($V x) {{\n  for (int l = 0; l < $L; l++) x[l] = {_LIBRARY[name]}$f(x[l]);\n"
        "  return x;\n}\n"
    )


SCALAR = {
    **{name: ((), _scalar(name)) for name in _LIBRARY},
    "rsqrt": ((), "static inline $E rsqrt_$S($E x) { return 1 / sqrt$f(x); }\n"),
    "square": ((), "static inline $E square_$S($E x) { return x * x; }\n"),
    "relu": ((), "static inline $E relu_$S($E x) { return x < 0 ? 0 : x; }\n"),
    "min": ((), "static inline $E min_$S($E a, $E b) { return a < b || a != a ? a : b; }\n"),
    "max": ((), "static inline $E max_$S($E a, $E b) { return a > b || a != a ? a : b; }\n"),
    "pow": ((), "static inline $E pow_$S($E a, $E b) { return pow$f(a, b); }\n"),
    "select": ((), "static inline $E select_$S(int mask, $E a, $E b) { return mask ? a : b; }\n"),
}

VECTOR = {
    **{name: ((), _lanes(name)) for name in _LIBRARY if name != "abs"},
    "abs": ((), "static inline $V abs_$S($V x) { return ($V)(($I)x & ~($I)(-($V){0})); }\n"),
    "rsqrt": (("sqrt",), "static inline $V rsqrt_$S($V x) { return 1 / sqrt_$S(x); }\n"),
    "square": ((), "static inline $V square_$S($V x) { return x * x; }\n"),
    "select": ((), """static inline $V select_$S($I mask, $V a, $V b) { return ($V)((mask & ($I)a) | (~mask & ($I)b)); }
"""),
    "relu": ((), "static inline $V relu_$S($V x) { return ($V)(($I)x & ~(x < 0)); }\n"),
    "min": (("select",), "static inline $V min_$S($V a, $V b) { return select_$S((a < b) | (a != a), a, b); }\n"),
    "max": (("select",), "static inline $V max_$S($V a, $V b) { return select_$S((a > b) | (a != a), a, b); }\n"),
    "pow": ((), """static inline $V pow_$S($V a, $V b) {
  for (int l = 0; l < $L; l++) a[l] = pow$f(a[l], b[l]);
  return a;
}
"""),
}  # fmt: skip
