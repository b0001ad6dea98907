program bias_gelu ir 1 target cuda sm_80
  size M = 4096
  size N = 1000 multiple 4
  const T = 256 of 128 256
  const V = 4 of 1 2 4
  param x: f32[M, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch main grid m = M, c = ceil(N/(T*V)) threads T
  y[m, j in c*T*V +: T*V] = gelu_erf(x[m, j] + bias[j]) vector V where j < N
