program matmul_bias_relu ir 1 target c x86-64-v3
  structure split_k
  size M = 64
  size N = 96
  size K = 8192
  const Z = 4 of 2 4 8
  const TM = 4
  const TN = 16
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
  workspace part: f32[Z, M, N] align 64
launch partial grid z = Z
  for i0 in 0..M step TM:
    for j0 in 0..N step TN:
      register acc: f32[TM, TN] spread lanes 8 = 0
      for k in z*(K/Z)..(z + 1)*(K/Z):
        acc += outer(a[i0 +: TM, k], b[k, j0 +: TN]) math fma
      copy acc -> part[z, i0 +: TM, j0 +: TN] vector 8
launch combine grid m = M/TM
  for j0 in 0..N step TN:
    register total: f32[TM, TN] spread lanes 8 = 0
    for z in 0..Z:
      total[i in 0 +: TM, j in 0 +: TN] += part[z, m*TM + i, j0 + j]
    y[i in m*TM +: TM, j in j0 +: TN] = relu(total + bias[j]) vector 8
