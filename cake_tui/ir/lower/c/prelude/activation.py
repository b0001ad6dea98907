"""Activation functions, each in a form without cancellation."""

_TANH_FORM = "1.59576912160573071176$f * (x + 0.044715$f * x * x * x)"

SCALAR = {
    "sigmoid": ((), "static inline $E sigmoid_$S($E x) { return 1 / (1 + exp$f(-x)); }\n"),
    "silu": ((), "static inline $E silu_$S($E x) { return x / (1 + exp$f(-x)); }\n"),
    "gelu_erf": ((), """static inline $E gelu_erf_$S($E x) { return 0.5$f * x * erfc$f(-0.70710678118654752440$f * x); }
"""),
    "gelu_tanh": ((), f"static inline $E gelu_tanh_$S($E x) {{ return x / (1 + exp$f(-({_TANH_FORM}))); }}\n"),
}  # fmt: skip

# gelu_erf: the normal distribution's lower tail erfc(z)/2 = exp(-z z) t p(t), t = 1/(1 + 0.3 z), z = |x|/sqrt(2). The
# nine coefficients of p were fitted here for the least largest relative error over z <= 9.5 (2e-8), so that the small
# values far below zero keep their digits too.
VECTOR = {
    "sigmoid": (("exp",), "static inline $V sigmoid_$S($V x) { return 1 / (1 + exp_$S(-x)); }\n"),
    "silu": (("exp",), "static inline $V silu_$S($V x) { return x / (1 + exp_$S(-x)); }\n"),
    "gelu_tanh": (("exp",), f"static inline $V gelu_tanh_$S($V x) {{ return x / (1 + exp_$S(-({_TANH_FORM}))); }}\n"),
    "gelu_erf": (("exp", "abs", "select"), """static inline $V gelu_erf_$S($V x) {
  const $V z = 0.70710678118654752440$f * abs_$S(x);
  const $V t = 1 / (1 + 0.3$f * z);
  $V y = t * -0.0647172989$f + 0.242549484$f;
  y = y * t - 0.255615819$f;
  y = y * t + 0.273200477$f;
  y = y * t - 0.0468176429$f;
  y = y * t + 0.107218982$f;
  y = y * t + 0.0742410064$f;
  y = y * t + 0.0853459952$f;
  y = y * t + 0.0845948059$f;
  const $V below = exp_$S(-z * z) * (y * t);
  return x * select_$S(x < 0, below, 1 - below);
}
"""),
}  # fmt: skip

# Vectors of doubles go through the library, an element at a time.
_LANES = "static inline $V {name}_$S($V x) {{\n  for (int l = 0; l < $L; l++) x[l] = {body};\n  return x;\n}}\n"
VECTOR_F64 = {
    "exp": ((), _LANES.format(name="exp", body="exp(x[l])")),
    "gelu_erf": ((), _LANES.format(name="gelu_erf", body="0.5 * x[l] * erfc(-0.70710678118654752440 * x[l])")),
}
