program matmul_bias_relu ir 1 target cuda sm_80
  size M = 512 multiple 64
  size N = 512 multiple 64
  size K = 32 multiple 32
  const BM = 64
  const BN = 64
  const BK = 32
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch main persistent 4 grid m = M/BM, n = N/BN order column threads 256
  shared a_tile: f32[BM, BK] pad 4
  shared b_tile: f32[BK, BN]
  register acc: f32[BM, BN] spread 16 x 16 threads, 4 x 4 each = 0
  for k in 0..K/BK:
    async_copy a[m*BM +: BM, k*BK +: BK] -> a_tile vector 4 completes group loads
    async_copy b[k*BK +: BK, n*BN +: BN] -> b_tile vector 4 completes group loads
    commit group loads
    wait group loads
    barrier block
    for kk in 0..BK unroll 8:
      acc += outer(a_tile[:, kk], b_tile[kk, :]) math fma
    barrier block
  y[m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j]) vector 4
