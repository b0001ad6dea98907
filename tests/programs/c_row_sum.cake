program row_sum ir 1 target c x86-64-v3
  size R runtime from 1 to 1000000
  size C runtime from 1 to 1000000
  param x: f32[R, C]
  param y: f32[R] out
launch main grid b = ceil(R/16)
  for r in b*16..min((b + 1)*16, R):
    register lanes: f32[8] spread lanes 8 = 0
    register total: f32[1]
    for c in 0..ceil(C/8):
      lanes += x[r, j in c*8 +: 8] vector 8 where j < C else 0
    reduce lanes over 0 with add -> total
    y[r +: 1] = total
