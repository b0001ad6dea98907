program matmul_bias_relu ir 1 target cuda sm_90a
  size M = 1024 multiple 64
  size N = 1024 multiple 64
  size K = 1024 multiple 16
  const BM = 64
  const BN = 64
  const BK = 16
  const S = 2 of 2 3
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N]
  param y: f32[M, N] out align 16
launch main grid n = N/BN, m = M/BM threads 416
  warp_role loader warps 0
  warp_role compute warps 1 to 8
  warp_role epilogue warps 9 to 12
  shared a_tile: f32[S, BM, BK] align 128 ring
  shared b_tile: f32[S, BK, BN] align 128 ring
  shared out_tile: f32[BM, BN] align 128
  barrier full[S] arrivals 1
  barrier free[S] arrivals 8
  barrier done[1] arrivals 256
  role loader, one thread:
    for k in 0..K/BK pipeline_stage S:
      wait free[k]
      expect full[k] bytes 4*BK*(BM + BN)
      tma_copy a[m*BM +: BM, k*BK +: BK] -> a_tile[k] completes full[k]
      tma_copy b[k*BK +: BK, n*BN +: BN] -> b_tile[k] completes full[k]
  role compute:
    register acc: f32[BM, BN] in compute spread 16 x 16 threads, 4 x 4 each = 0
    for k in 0..K/BK pipeline_stage S:
      wait full[k]
      for kk in 0..BK unroll 8:
        acc += outer(a_tile[k, :, kk], b_tile[k, kk, :]) math fma
      arrive free[k] once a warp
    out_tile[i in 0 +: BM, j in 0 +: BN] = relu(acc + bias[n*BN + j])
    fence async_proxy
    arrive done[0]
  role epilogue, one thread:
    wait done[0]
    tma_copy out_tile -> y[m*BM +: BM, n*BN +: BN] completes group stores
    commit group stores
    wait group stores
