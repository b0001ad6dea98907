program row_sum ir 1 target cuda sm_80
  size R = 4099
  size C = 1003
  param x: f32[R, C]
  param y: f32[R] out
launch main grid r = ceil(R/8) threads 256
  register total: f32[8, 32] spread 8 x 32 threads, 1 x 1 each = 0
  register row: f32[8] spread 8 threads, 1 each
  for c in 0..ceil(C/32) unroll 4:
    total[i in 0 +: 8, j in 0 +: 32] += x[r*8 + i, c*32 + j] where r*8 + i < R and c*32 + j < C else 0
  reduce total over 1 with add -> row within warp
  y[i in r*8 +: 8] = row where i < R
