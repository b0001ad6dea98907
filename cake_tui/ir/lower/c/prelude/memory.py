"""Loads and stores of vectors at any alignment, whole or only their first elements."""

VECTOR = {
    "load": ((), """static inline $V load_$S(const $E *p) {
  $V v;
  memcpy(&v, p, sizeof v);
  return v;
}
"""),
    "store": ((), """static inline void store_$S($E *p, $V v) { memcpy(p, &v, sizeof v); }
"""),
    "load_part": (("load",), """static inline $V load_part_$S(const $E *p, long count) {
  $E v[$L];
  for (int l = 0; l < $L; l++) v[l] = l < count ? p[l] : 0;
  return load_$S(v);
}
"""),
    "store_part": ((), """static inline void store_part_$S($E *p, $V v, long count) {
  for (int l = 0; l < $L; l++)
    if (l < count) p[l] = v[l];
}
"""),
    "splat": ((), """static inline $V splat_$S($E x) { return x - ($V){0}; }
"""),
    "first": ((), """static inline $V first_$S($V v, long count, $E otherwise) {
  for (int l = 0; l < $L; l++)
    if (l >= count) v[l] = otherwise;
  return v;
}
"""),
}  # fmt: skip
