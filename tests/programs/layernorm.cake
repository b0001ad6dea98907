program layernorm ir 1 target cuda sm_80
  size R = 4096
  size C = 1024
  const T = 256
  param x: f32[R, C] align 16
  param g: f32[C]
  param y: f32[R, C] out align 16
launch main grid r = R threads T
  shared scratch: f32[32]
  shared scratch2: f32[32]
  register v: f32[C] spread T threads, 4 each
  register mean: f32[1]
  register var: f32[1]
  register d: f32[C] spread T threads, 4 each
  copy x[r, :] -> v vector 4
  reduce v over 0 with add -> mean within block through scratch
  d = square(v - mean[0]/C)
  reduce d over 0 with add -> var within block through scratch2
  y[r, c in 0 +: C] = (v - mean[0]/C)*rsqrt(var[0]/C + 1e-05)*g[c] vector 4
