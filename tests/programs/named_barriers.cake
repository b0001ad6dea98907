program pingpong ir 1 target cuda sm_90a
  size N = 65536 multiple 4096
  param x: f32[N] align 16
  param y: f32[N] out
launch main grid b = N/4096 threads 256
  warp_role loader warps 0 to 3
  warp_role compute warps 4 to 7
  shared t: f32[1024] align 128
  role loader:
    for k in 0..4:
      barrier named 1 threads 256
      copy x[b*4096 + k*1024 +: 1024] -> t vector 4
      barrier named 2 threads 256
  role compute:
    for k in 0..4:
      barrier named 1 threads 256
      barrier named 2 threads 256
      y[i in b*4096 + k*1024 +: 1024] = relu(t[i - b*4096 - k*1024])
