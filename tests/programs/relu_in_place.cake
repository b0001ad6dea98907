program relu_inplace ir 1 target cuda sm_80
  size N = 4096
  param x: f32[N] inout
launch main grid b = N/256 threads 256
  x[i in b*256 +: 256] = relu(x[i])
