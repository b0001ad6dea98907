program row_sum ir 1 target cuda sm_80
  size R = 64
  size C = 1000000 multiple 16
  const Z = 16 of 4 8 16
  const T = 256
  param x: f32[R, C]
  param y: f32[R] out
  workspace part: f32[R, Z]
launch partial grid z = Z, r = R threads T
  shared scratch: f32[32]
  register total: f32[T] spread T threads, 1 each = 0
  register row: f32[1]
  for c in 0..ceil(C/Z/T):
    total[j in 0 +: T] += x[r, z*(C/Z) + c*T + j] where c*T + j < C/Z else 0
  reduce total over 0 with add -> row within block through scratch
  part[r, z +: 1] = row
launch combine grid r = R threads 32
  register v: f32[Z]
  register row: f32[1]
  copy part[r, :] -> v
  reduce v over 0 with add -> row
  y[r +: 1] = row
