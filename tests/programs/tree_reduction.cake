program row_sum ir 1 target cuda sm_80
  size R = 512
  size C = 4096
  param x: f32[R, C]
  param y: f32[R] out
launch main grid r = R threads 256
  shared s0: f32[256]
  shared s1: f32[128]
  shared s2: f32[64]
  shared s3: f32[32]
  shared s4: f32[16]
  shared s5: f32[8]
  shared s6: f32[1]
  register total: f32[256] spread 256 threads, 1 each = 0
  for c in 0..C/256:
    total[j in 0 +: 256] += x[r, c*256 + j]
  copy total -> s0
  barrier block
  s1[j in 0 +: 128] = s0[j] + s0[j + 128]
  barrier block
  s2[j in 0 +: 64] = s1[j] + s1[j + 64]
  barrier block
  s3[j in 0 +: 32] = s2[j] + s2[j + 32]
  barrier block
  s4[j in 0 +: 16] = s3[j] + s3[j + 16]
  barrier block
  s5[j in 0 +: 8] = s4[j] + s4[j + 8]
  barrier block
  s6[j in 0 +: 1] = s5[j] + s5[j + 1] + s5[j + 2] + s5[j + 3] + s5[j + 4] + s5[j + 5] + s5[j + 6] + s5[j + 7]
  barrier block
  y[r] = s6[0]
