program matmul_bias_relu ir 1 target cuda sm_80
  size M runtime from 1 to 65536
  size N runtime from 1 to 65536
  size K runtime from 1 to 65536
  const TX = 32 of 16 32
  const TY = 8 of 4 8 16
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch main grid n = ceil(N/TX), m = ceil(M/TY) threads TX*TY
  register acc: f32[TY, TX] spread TY x TX threads, 1 x 1 each = 0
  for k in 0..K:
    acc += outer(a[i in m*TY +: TY, k], b[k, j in n*TX +: TX]) math fma where i < M and j < N else 0
  y[i in m*TY +: TY, j in n*TX +: TX] = relu(acc + bias[j]) where i < M and j < N
