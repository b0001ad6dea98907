program matmul ir 1 target cuda sm_90a
  size M = 2048 multiple 128
  size N = 2048 multiple 128
  size K = 2048 multiple 64
  const BM = 128
  const BN = 64
  const BK = 64
  const S = 4
  param a: bf16[M, K] align 128
  param b: bf16[K, N] align 128
  param y: f32[M, N] out
launch main grid n = N/BN, m = M/BM threads 384
  warp_role producer warps 0 to 3 registers 40
  warp_role consumer warps 4 to 11 registers 232
  shared a_tile: bf16[S, BM, BK] align 1024 swizzle 128 ring
  shared b_tile: bf16[S, BK, BN] align 1024 swizzle 128 ring
  barrier full_a[S] arrivals 1
  barrier full_b[S] arrivals 1
  barrier free[S] arrivals 8
  role producer, one thread:
    for k in 0..K/BK pipeline_stage S:
      wait free[k]
      expect full_a[k] bytes 2*BM*BK
      tma_copy a[m*BM +: BM, k*BK +: BK] -> a_tile[k] completes full_a[k]
      expect full_b[k] bytes 2*BK*BN
      tma_copy b[k*BK +: BK, n*BN +: BN] -> b_tile[k] completes full_b[k]
  role consumer:
    register acc: f32[BM, BN] in consumer spread fragment m64n64k16.acc = 0
    fence wgmma
    for k in 0..K/BK pipeline_stage S:
      wait full_a[k]
      wait full_b[k]
      acc += wgmma(a_tile[k], b_tile[k]) math bf16 completes group products
      commit group products
      wait group products pending 1
      if k > 0:
        arrive free[k - 1] once a warp
    wait group products
    copy acc -> y[m*BM +: BM, n*BN +: BN]
