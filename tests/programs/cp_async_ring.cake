program matmul_bias_relu ir 1 target cuda sm_80
  size M = 1000
  size N = 1000 multiple 4
  size K = 1000 multiple 4
  const BM = 64
  const BN = 64
  const BK = 16
  const S = 4 of 2 3 4
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N]
  param y: f32[M, N] out
launch main grid n = ceil(N/BN), m = ceil(M/BM) threads 256
  shared a_tile: f32[S, BM, BK] pad 4 ring
  shared b_tile: f32[S, BK, BN] ring
  register acc: f32[BM, BN] spread 16 x 16 threads, 4 x 4 each = 0
  for p in 0..S - 1:
    async_copy a[i in m*BM +: BM, k in p*BK +: BK] -> a_tile[p] vector 4 completes group loads where i < M and k < K else 0
    async_copy b[k in p*BK +: BK, j in n*BN +: BN] -> b_tile[p] vector 4 completes group loads where k < K and j < N else 0
    commit group loads
  for t in 0..ceil(K/BK) pipeline_stage S:
    wait group loads pending S - 2
    barrier block
    if t + S - 1 < ceil(K/BK):
      async_copy a[i in m*BM +: BM, k in (t + S - 1)*BK +: BK] -> a_tile[t + S - 1] vector 4 completes group loads where i < M and k < K else 0
      async_copy b[k in (t + S - 1)*BK +: BK, j in n*BN +: BN] -> b_tile[t + S - 1] vector 4 completes group loads where k < K and j < N else 0
    commit group loads
    for kk in 0..BK unroll 8:
      acc += outer(a_tile[t, :, kk], b_tile[t, kk, :]) math fma
  y[i in m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j]) where i < M and j < N
