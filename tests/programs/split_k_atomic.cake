program matmul_bias_relu ir 1 target cuda sm_90a
  size M = 500
  size N = 500
  size K = 4096 multiple 128
  const BM = 64
  const BN = 64
  const BK = 16
  const Z = 8 of 2 4 8
  param a: f32[M, K] align 16
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch zero grid n = ceil(N/BN), m = ceil(M/BM) threads 256
  y[i in m*BM +: BM, j in n*BN +: BN] = 0 where i < M and j < N
launch partial grid n = ceil(N/BN), m = ceil(M/BM), z = Z threads 256
  shared a_tile: f32[BM, BK] pad 4
  shared b_tile: f32[BK, BN]
  register acc: f32[BM, BN] spread 16 x 16 threads, 4 x 4 each = 0
  for k in 0..K/Z/BK:
    copy a[i in m*BM +: BM, z*(K/Z) + k*BK +: BK] -> a_tile vector 4 where i < M else 0
    copy b[z*(K/Z) + k*BK +: BK, j in n*BN +: BN] -> b_tile where j < N else 0
    barrier block
    for kk in 0..BK unroll 8:
      acc += outer(a_tile[:, kk], b_tile[kk, :]) math fma
    barrier block
  atomic add y[i in m*BM +: BM, j in n*BN +: BN] with acc where i < M and j < N
launch finish grid n = ceil(N/BN), m = ceil(M/BM) threads 256
  y[i in m*BM +: BM, j in n*BN +: BN] = relu(y[i, j] + bias[j]) where i < M and j < N
