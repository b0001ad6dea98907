program matmul_bias_relu ir 1 target cuda sm_90a
  size M = 1024 multiple 128
  size N = 1024 multiple 128
  size K = 1024 multiple 16
  const BM = 128 of 64 128
  const BN = 128 of 64 128
  const BK = 16 of 8 16
  const S = 3 of 2 3 4
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N]
  param y: f32[M, N] out align 16
launch main grid n = N/BN, m = M/BM threads 384
  warp_role loader warps 0 to 3 registers 40
  warp_role compute warps 4 to 11 registers 232
  shared a_tile: f32[S, BM, BK] align 512 swizzle 64 ring
  shared b_tile: f32[S, BK, BN] align 128 ring
  barrier full_a[S] arrivals 1
  barrier full_b[S] arrivals 1
  barrier free[S] arrivals 8
  role loader, one thread:
    for k in 0..K/BK pipeline_stage S:
      wait free[k]
      expect full_a[k] bytes 4*BM*BK
      tma_copy a[m*BM +: BM, k*BK +: BK] -> a_tile[k] completes full_a[k]
      expect full_b[k] bytes 4*BK*BN
      tma_copy b[k*BK +: BK, n*BN +: BN] -> b_tile[k] completes full_b[k]
  role compute:
    register acc: f32[BM, BN] in compute spread 16 x 16 threads, 8 x 8 each = 0
    for k in 0..K/BK pipeline_stage S:
      wait full_a[k]
      wait full_b[k]
      for kk in 0..BK unroll 8:
        acc += outer(a_tile[k, :, kk], b_tile[k, kk, :]) math fma
      arrive free[k] once a warp
    y[m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j]) vector 4
