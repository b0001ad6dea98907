"""Activation functions, each in a form without cancellation."""

_TANH_FORM = "1.59576912160573071176$f * (x + 0.044715$f * x * x * x)"

SCALAR = {
    "sigmoid": ((), "static inline $E sigmoid_$S($E x) { return 1 / (1 + exp$f(-x)); }\n"),
    "silu": ((), "static inline $E silu_$S($E x) { return x / (1 + exp$f(-x)); }\n"),
    "gelu_erf": ((), """static inline $E gelu_erf_$S($E x) { return 0.5$f * x * erfc$f(-0.70710678118654752440$f * x); }
"""),
    "gelu_tanh": ((), f"static inline $E gelu_tanh_$S($E x) {{ return x / (1 + exp$f(-({_TANH_FORM}))); }}\n"),
}  # fmt: skip

VECTOR = {
    "sigmoid": (("exp",), "static inline $V sigmoid_$S($V x) { return 1 / (1 + exp_$S(-x)); }\n"),
    "silu": (("exp",), "static inline $V silu_$S($V x) { return x / (1 + exp_$S(-x)); }\n"),
    "gelu_tanh": (("exp",), f"static inline $V gelu_tanh_$S($V x) {{ return x / (1 + exp_$S(-({_TANH_FORM}))); }}\n"),
    "gelu_erf": (("erf",), """static inline $V gelu_erf_$S($V x) {
  return 0.5$f * x * (1 + erf_$S(0.70710678118654752440$f * x));
}
"""),
}  # fmt: skip
