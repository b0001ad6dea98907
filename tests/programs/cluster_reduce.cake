program row_sum ir 1 target cuda sm_90a
  size R = 256
  size C = 65536 multiple 1024
  const P = 4 of 2 4
  const T = 256
  param x: f32[R, C]
  param y: f32[R] out
launch main grid p = P, r = R cluster P x 1 threads T
  shared scratch: f32[32]
  register total: f32[T] spread T threads, 1 each = 0
  register row: f32[1]
  for c in 0..C/P/T:
    total[j in 0 +: T] += x[r, p*(C/P) + c*T + j]
  reduce total over 0 with add -> row within cluster through scratch
  if p == 0:
    y[r +: 1] = row
