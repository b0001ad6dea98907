program matmul_bias_relu ir 1 target cuda sm_90a
  size M = 512 multiple 32
  size N = 512 multiple 32
  size K = 512 multiple 16
  const BM = 32
  const BN = 32
  const BK = 16
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N]
  param y: f32[M, N] out
launch main grid n = N/BN, m = M/BM threads 256
  shared a_tile: f32[2, BM, BK] pad 4 ring
  shared b_tile: f32[2, BK, BN] ring
  register acc: f32[BM, BN] spread 16 x 16 threads, 2 x 2 each = 0
  copy a[m*BM +: BM, 0 +: BK] -> a_tile[0] vector 4
  copy b[0 +: BK, n*BN +: BN] -> b_tile[0] vector 4
  for k in 0..K/BK:
    barrier block
    if k + 1 < K/BK:
      copy a[m*BM +: BM, (k + 1)*BK +: BK] -> a_tile[k + 1] vector 4
      copy b[(k + 1)*BK +: BK, n*BN +: BN] -> b_tile[k + 1] vector 4
    for kk in 0..BK unroll 8:
      acc += outer(a_tile[k, :, kk], b_tile[k, kk, :]) math fma
  y[m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j])
