program kmeans_assign ir 1 target cuda sm_90a
  size N = 1024 multiple 32
  size D = 64
  size K = 16
  param x: f32[N, D]
  param c: f32[K, D]
  param label: i32[N] out
launch assign threads 32
  shared centres: f32[K, D]
  copy c -> centres
  barrier warp
  for t in 0..N/32:
    register best: f32[32] spread 32 threads, 1 each = inf
    register nearest: i32[32] spread 32 threads, 1 each = 0
    for k in 0..K carry best, nearest:
      register d: f32[32, 1] spread 32 x 1 threads, 1 x 1 each = 0
      for e in 0..D unroll 8:
        d[i in 0 +: 32, 0] += square(x[t*32 + i, e] - centres[k, e])
      argmin d over 1 from k -> best, nearest carry
    copy nearest -> label[t*32 +: 32]
