program stencil ir 1 target cuda sm_80
  size N = 4096
  param x: f32[N]
  param y: f32[N] out
launch main grid b = N/256 threads 256
  shared s: f32[258]
  s[j in 0 +: 258] = x[b*256 + j - 1] where b*256 + j - 1 >= 0 and b*256 + j - 1 < N else 0
  barrier block
  y[i in b*256 +: 256] = s[i - b*256] + s[i - b*256 + 1] + s[i - b*256 + 2]
