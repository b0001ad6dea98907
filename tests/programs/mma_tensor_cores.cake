program matmul ir 1 target cuda sm_80
  size M = 1024 multiple 64
  size N = 1024 multiple 64
  size K = 1024 multiple 32
  const BM = 64
  const BN = 64
  const BK = 32
  param a: bf16[M, K] align 16
  param b: bf16[K, N] align 16
  param y: f32[M, N] out
launch main grid n = N/BN, m = M/BM threads 128
  shared a_tile: bf16[BM, BK] pad 8
  shared b_tile: bf16[BK, BN] pad 8
  register acc: f32[BM, BN] spread fragment m16n8k16.acc = 0
  for k in 0..K/BK:
    async_copy a[m*BM +: BM, k*BK +: BK] -> a_tile vector 8 completes group loads
    async_copy b[k*BK +: BK, n*BN +: BN] -> b_tile vector 8 completes group loads
    commit group loads
    wait group loads
    barrier block
    for kk in 0..BK/16:
      register x: bf16[BM, 16] spread fragment m16n8k16.a
      register z: bf16[16, BN] spread fragment m16n8k16.b
      copy a_tile[:, kk*16 +: 16] -> x
      copy b_tile[kk*16 +: 16, :] -> z
      acc += mma(x, z) math bf16
    barrier block
  copy acc -> y[m*BM +: BM, n*BN +: BN]
