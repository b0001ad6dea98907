program matmul_bias_relu ir 1 target cuda sm_90a
  size M = 512 multiple 64
  size N = 512 multiple 64
  size K = 64 multiple 32
  const BM = 64
  const BN = 64
  const BK = 32
  const S = 4 of 2 4
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch main persistent 4 grid m = M/BM, n = N/BN threads 160
  warp_role loader warps 0
  warp_role compute warps 1 to 4
  shared a_tile: f32[S, BM, BK] align 128 ring
  shared b_tile: f32[S, BK, BN] align 128 ring
  barrier full[S] arrivals 1
  barrier free[S] arrivals 4
  role loader, one thread:
    for k in 0..K/BK pipeline_stage S:
      wait free[k]
      expect full[k] bytes 4*BK*(BM + BN)
      tma_copy a[m*BM +: BM, k*BK +: BK] -> a_tile[k] completes full[k]
      tma_copy b[k*BK +: BK, n*BN +: BN] -> b_tile[k] completes full[k]
  role compute:
    register acc: f32[BM, BN] in compute spread 16 x 8 threads, 4 x 8 each = 0
    for k in 0..K/BK pipeline_stage S:
      wait full[k]
      for kk in 0..BK unroll 8:
        acc += outer(a_tile[k, :, kk], b_tile[k, kk, :]) math fma
      arrive free[k] once a warp
    y[m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j]) vector 4
