program matmul_bias_relu ir 1 target cuda sm_90a
  structure blocked
  size M = 1024 multiple 4
  size N = 1000 multiple 4
  size K = 1024 multiple 4
  const TX = 16 of 8 16 32
  const TY = 16 of 8 16
  const RM = 4 of 2 4 8
  const RN = 8 of 4 8
  const BK = 16 of 8 16 32
  const BM = TY*RM
  const BN = TX*RN
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch main grid n = ceil(N/BN), m = M/BM threads TX*TY
  shared a_tile: f32[BM, BK] pad 4
  shared b_tile: f32[BK, BN]
  register acc: f32[BM, BN] spread TY x TX threads, RM x RN each = 0
  for k in 0..K/BK:
    copy a[m*BM +: BM, k*BK +: BK] -> a_tile vector 4
    copy b[k*BK +: BK, j in n*BN +: BN] -> b_tile vector 4 where j < N else 0
    barrier block
    for kk in 0..BK unroll BK:
      register x: f32[BM] spread TY threads, RM each
      register z: f32[BN] spread TX threads, RN each
      copy a_tile[:, kk] -> x
      copy b_tile[kk, :] -> z vector 4
      acc += outer(x, z) math fma
    barrier block
  y[m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j]) vector 4 where j < N
