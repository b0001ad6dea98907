program softmax ir 1 target cuda sm_90a
  size R = 4096
  size C = 1000
  const T = 256 of 128 256 512
  param x: f32[R, C]
  param y: f32[R, C] out
launch main grid r = R threads T
  shared scratch: f32[32]
  register top: f32[T] spread T threads, 1 each = -3e+38
  register total: f32[T] spread T threads, 1 each = 0
  register row_top: f32[1]
  register row_total: f32[1]
  for c in 0..ceil(C/T) carry top, total:
    register v: f32[T] spread T threads, 1 each
    register larger: f32[T] spread T threads, 1 each
    copy x[r, j in c*T +: T] -> v where j < C else -3e+38
    larger = max(top, v)
    total = total*exp(top - larger) + select(v > -3e+38, exp(v - larger), 0)
    top = larger
  reduce top over 0 with max -> row_top within block through scratch
  total = total*exp(top - row_top[0])
  reduce total over 0 with add -> row_total within block through scratch
  for c in 0..ceil(C/T):
    y[r, j in c*T +: T] = exp(x[r, j] - row_top[0])/row_total[0] where j < C
