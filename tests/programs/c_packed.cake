program matmul_bias_relu ir 1 target c x86-64-v4
  structure packed
  size M = 500
  size N = 500
  size K = 500
  const BM = 48
  const TM = 8 of 4 6 8
  const BN = 32 of 16 32
  const BK = 256 of 128 256
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
  workspace panels: f32[ceil(N/BN), K, BN] align 64
launch pack grid p = ceil(N/BN)
  panels[p, k in 0 +: K, j in 0 +: BN] = b[k, p*BN + j] where p*BN + j < N else 0
launch main grid m = ceil(M/BM)
  shared rows: f32[BM, K] align 64 pad 16
  copy a[i in m*BM +: BM, :] -> rows where i < M else 0
  for p in 0..ceil(N/BN):
    for i0 in 0..BM step TM:
      register acc: f32[TM, BN] spread lanes 16 = 0
      for k in 0..K unroll 4:
        acc += outer(rows[i0 +: TM, k], panels[p, k, :]) math fma
      y[i in m*BM + i0 +: TM, j in p*BN +: BN] = relu(acc + bias[j]) vector 16 where i < M and j < N
