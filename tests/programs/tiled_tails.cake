program matmul_bias_relu ir 1 target cuda sm_90a
  size M runtime from 1 to 65536
  size N runtime from 1 to 65536
  size K runtime from 1 to 65536
  const BM = 32 of 16 32
  const BN = 32 of 16 32
  const BK = 16 of 8 16
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch main grid n = ceil(N/BN), m = ceil(M/BM) threads BM*BN/4
  shared a_tile: f32[BM, BK] pad 1
  shared b_tile: f32[BK, BN] pad 1
  register acc: f32[BM, BN] spread BM/2 x BN/2 threads, 2 x 2 each = 0
  for k in 0..ceil(K/BK):
    copy a[i in m*BM +: BM, p in k*BK +: BK] -> a_tile where i < M and p < K else 0
    copy b[p in k*BK +: BK, j in n*BN +: BN] -> b_tile where p < K and j < N else 0
    barrier block
    for kk in 0..BK unroll 4:
      acc += outer(a_tile[:, kk], b_tile[kk, :]) math fma
    barrier block
  y[i in m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j]) where i < M and j < N
