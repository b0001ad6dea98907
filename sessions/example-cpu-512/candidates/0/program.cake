program matmul_bias_relu ir 1 target c x86-64-v4
  structure naive
  size M = 512
  size N = 512
  size K = 512
  param a: f32[M, K] align 4
  param b: f32[K, N] align 4
  param bias: f32[N] align 4
  param y: f32[M, N] out align 4
launch matmul
  for m in 0..M:
    for n in 0..N:
      register acc: f32 = 0
      for k in 0..K:
        acc += a[m, k]*b[k, n]
      y[m, n] = relu(acc + bias[n])
