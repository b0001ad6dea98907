program transpose ir 1 target cuda sm_80
  size M = 1000
  size N = 777
  param x: f32[M, N]
  param y: f32[N, M] out
launch main grid n = ceil(N/32), m = ceil(M/32) threads 256
  shared t: f32[32, 32] pad 1
  copy x[i in m*32 +: 32, j in n*32 +: 32] -> t where i < M and j < N else 0
  barrier block
  y[j in n*32 +: 32, i in m*32 +: 32] = t[i - m*32, j - n*32] where i < M and j < N
