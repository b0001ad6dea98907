program matmul_bias_relu ir 1 target c x86-64-v3
  structure tiled
  size M runtime from 1 to 65536
  size N runtime from 1 to 65536
  size K runtime from 1 to 65536
  const BM = 64 of 32 64 128
  const BN = 64 of 32 64 128
  const TM = 4 of 2 4 6
  const TN = 16 of 8 16
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch main grid n = ceil(N/BN), m = ceil(M/BM)
  for i0 in 0..BM step TM:
    for j0 in 0..BN step TN:
      register acc: f32[TM, TN] spread lanes 8 = 0
      for k in 0..K:
        acc += outer(a[i in m*BM + i0 +: TM, k], b[k, j in n*BN + j0 +: TN]) math fma where i < M and j < N else 0
      y[i in m*BM + i0 +: TM, j in n*BN + j0 +: TN] = relu(acc + bias[j]) vector 8 where i < M and j < N
