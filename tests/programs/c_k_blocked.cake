program matmul_bias_relu ir 1 target c x86-64-v3
  size M = 256
  size N = 256
  size K = 1024
  const BK = 128 of 64 128 256
  const TM = 4
  const TN = 16
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch zero grid m = M/TM
  y[m*TM +: TM, j in 0 +: N] = bias[j] vector 8
launch sums grid m = M/TM
  for k0 in 0..K step BK:
    for j0 in 0..N step TN:
      register acc: f32[TM, TN] spread lanes 8
      copy y[m*TM +: TM, j0 +: TN] -> acc vector 8
      for k in k0..k0 + BK:
        acc += outer(a[m*TM +: TM, k], b[k, j0 +: TN]) math fma
      copy acc -> y[m*TM +: TM, j0 +: TN] vector 8
launch finish grid m = M/TM
  y[i in m*TM +: TM, j in 0 +: N] = relu(y[i, j]) vector 8
