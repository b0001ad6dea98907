program matmul_bias_relu ir 1 target cuda sm_90a
  structure naive
  size M = 1000
  size N = 1000
  size K = 1000
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch main grid n = ceil(N/32), m = ceil(M/8) threads 256
  register acc: f32[8, 32] spread 8 x 32 threads, 1 x 1 each = 0
  for k in 0..K:
    acc += outer(a[i in m*8 +: 8, k], b[k, j in n*32 +: 32]) math fma where i < M and j < N else 0
  y[i in m*8 +: 8, j in n*32 +: 32] = relu(acc + bias[j]) where i < M and j < N
