program row_sum ir 1 target cuda sm_80
  size R = 512
  size C = 4096
  param x: f32[R, C]
  param y: f32[R] out
launch main grid r = R threads 256
  shared s: f32[256]
  register total: f32[256] spread 256 threads, 1 each = 0
  for c in 0..C/256:
    total[j in 0 +: 256] += x[r, c*256 + j]
  copy total -> s
  barrier block
  s[j in 0 +: 128] += s[j + 128]
  barrier block
  s[j in 0 +: 64] += s[j + 64]
  barrier block
  s[j in 0 +: 32] += s[j + 32]
  barrier block
  s[j in 0 +: 16] += s[j + 16]
  barrier block
  s[j in 0 +: 8] += s[j + 8]
  barrier block
  s[j in 0 +: 4] += s[j + 4]
  barrier block
  y[r] = s[0] + s[1] + s[2] + s[3]
