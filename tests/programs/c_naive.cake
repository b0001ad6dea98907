program matmul_bias_relu ir 1 target c x86-64-v4
  structure naive
  size M = 500
  size N = 500
  size K = 500
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch main
  for i in 0..M:
    for j in 0..N:
      register acc: f32[1, 1] = 0
      for k in 0..K:
        acc += outer(a[i +: 1, k], b[k, j +: 1]) math fma
      y[i +: 1, j +: 1] = relu(acc + bias[j])
