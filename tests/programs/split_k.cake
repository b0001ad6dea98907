program matmul_bias_relu ir 1 target cuda sm_90a
  structure split_k
  size M = 512 multiple 64
  size N = 512 multiple 64
  size K = 4096 multiple 128
  const BM = 64
  const BN = 64
  const BK = 16
  const Z = 8 of 2 4 8
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N]
  param y: f32[M, N] out
  workspace part: f32[Z, M, N] align 16
launch partial grid n = N/BN, m = M/BM, z = Z threads 256
  shared a_tile: f32[BM, BK] pad 4
  shared b_tile: f32[BK, BN]
  register acc: f32[BM, BN] spread 16 x 16 threads, 4 x 4 each = 0
  for k in z*(K/Z/BK)..(z + 1)*(K/Z/BK):
    copy a[m*BM +: BM, k*BK +: BK] -> a_tile vector 4
    copy b[k*BK +: BK, n*BN +: BN] -> b_tile vector 4
    barrier block
    for kk in 0..BK unroll 8:
      acc += outer(a_tile[:, kk], b_tile[kk, :]) math fma
    barrier block
  copy acc -> part[z, m*BM +: BM, n*BN +: BN] vector 4
launch combine grid n = N/BN, m = M/BM threads 256
  register total: f32[BM, BN] spread 16 x 16 threads, 4 x 4 each = 0
  for z in 0..Z:
    total[i in 0 +: BM, j in 0 +: BN] += part[z, m*BM + i, n*BN + j]
  y[m*BM +: BM, j in n*BN +: BN] = relu(total + bias[j])
