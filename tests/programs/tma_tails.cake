program matmul_bias ir 1 target cuda sm_90a
  size M = 1000
  size N = 1000 multiple 4
  size K = 1000 multiple 4
  const BM = 64
  const BN = 64
  const BK = 32
  const S = 4
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N]
  param y: f32[M, N] out align 16
launch main grid n = ceil(N/BN), m = ceil(M/BM) threads 288
  warp_role producer warps 0
  warp_role consumer warps 1 to 8
  shared a_tile: f32[S, BM, BK] align 128 ring
  shared b_tile: f32[S, BK, BN] align 128 ring
  barrier full[S] arrivals 1
  barrier free[S] arrivals 256
  role producer, one thread:
    for k in 0..ceil(K/BK) pipeline_stage S:
      wait free[k]
      expect full[k] bytes 4*BK*(BM + BN)
      tma_copy a[i in m*BM +: BM, p in k*BK +: BK] -> a_tile[k] completes full[k] where i < M and p < K else 0
      tma_copy b[p in k*BK +: BK, j in n*BN +: BN] -> b_tile[k] completes full[k] where p < K and j < N else 0
  role consumer:
    register acc: f32[BM, BN] in consumer spread 16 x 16 threads, 4 x 4 each = 0
    for k in 0..ceil(K/BK) pipeline_stage S:
      wait full[k]
      for kk in 0..BK unroll 8:
        acc += outer(a_tile[k, :, kk], b_tile[k, kk, :]) math fma
      arrive free[k]
    y[i in m*BM +: BM, j in n*BN +: BN] = acc + bias[j] where i < M and j < N
