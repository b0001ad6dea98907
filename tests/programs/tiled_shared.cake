program matmul_bias_relu ir 1 target cuda sm_90a
  structure tiled
  size M = 1024 multiple 16
  size N = 1024 multiple 16
  size K = 1024 multiple 16
  const T = 16 of 8 16 32
  param a: f32[M, K]
  param b: f32[K, N]
  param bias: f32[N]
  param y: f32[M, N] out
launch main grid n = N/T, m = M/T threads T*T
  shared a_tile: f32[T, T] pad 1
  shared b_tile: f32[T, T]
  register acc: f32[T, T] spread T x T threads, 1 x 1 each = 0
  for k in 0..K/T:
    copy a[m*T +: T, k*T +: T] -> a_tile
    copy b[k*T +: T, n*T +: T] -> b_tile
    barrier block
    for kk in 0..T unroll 4:
      acc += outer(a_tile[:, kk], b_tile[kk, :]) math fma
    barrier block
  y[m*T +: T, j in n*T +: T] = relu(acc + bias[j])
