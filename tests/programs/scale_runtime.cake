program scale ir 1 target cuda sm_80
  size N runtime multiple 4 from 4 to 1073741824
  const T = 256
  param x: f32[N] align 16
  param y: f32[N] out align 16
launch main grid b = ceil(N/(T*4)) threads T
  y[i in b*T*4 +: T*4] = x[i]*2 vector 4 where i < N
