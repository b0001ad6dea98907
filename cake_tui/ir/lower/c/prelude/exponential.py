"""The exponential and what is made of it, for whole vectors: 2^n times a polynomial of the rest."""

# exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2)/2, exp(r) by its Taylor series to r^7 (5e-9 relative).
# ln 2 is taken in two parts, the first exact in few bits, so that r keeps its digits. Only for f32; lanes of f64
# go one by one through the library.
VECTOR = {
    "exp": (("select",), """static inline $V exp_$S($V x) {
  const $V n = (x * 1.44269504$f + 12582912.0$f) - 12582912.0$f;
  const $V r = (x - n * 0.693145752$f) - n * 1.42860682e-6$f;
  $V y = r * 1.98412698e-4$f + 1.38888889e-3$f;
  y = y * r + 8.33333333e-3$f;
  y = y * r + 4.16666667e-2$f;
  y = y * r + 1.66666667e-1$f;
  y = y * r + 0.5$f;
  y = y * r + 1;
  y = y * r + 1;
  const $I half = __builtin_convertvector(n * 0.5$f, $I);
  const $I rest = __builtin_convertvector(n, $I) - half;
  y = y * ($V)((half + 127) << 23) * ($V)((rest + 127) << 23);
  y = select_$S(x > 88.722839$f, ($V){0} + INFINITY, y);
  return select_$S(x < -103.97$f, ($V){0}, y);
}
"""),
}  # fmt: skip
