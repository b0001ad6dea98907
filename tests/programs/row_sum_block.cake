program row_sum ir 1 target cuda sm_80
  size R = 1000
  size C = 4000 multiple 4
  const T = 256 of 128 256 512
  param x: f32[R, C] align 16
  param y: f32[R] out
launch main grid r = R threads T
  shared part: f32[T]
  register total: f32[T] spread T threads, 1 each = 0
  register row: f32[1]
  for c in 0..ceil(C/(4*T)):
    register v: f32[T, 4] spread T x 1 threads, 1 x 4 each
    register four: f32[T] spread T threads, 1 each
    v[p in 0 +: T, q in 0 +: 4] = x[r, c*4*T + p*4 + q] vector 4 where c*4*T + p*4 + q < C else 0
    reduce v over 1 with add -> four
    total += four
  copy total -> part
  reduce part over 0 with add -> row within block
  y[r +: 1] = row
