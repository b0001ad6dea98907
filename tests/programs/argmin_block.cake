program nearest ir 1 target cuda sm_80
  size N = 512
  size D = 32
  size K = 100
  param x: f32[N, D]
  param c: f32[K, D]
  param label: i32[N] out
  param dist: f32[N] out
launch main grid n = N threads 128
  shared scratch: f32[64]
  register d: f32[128] spread 128 threads, 1 each = 0
  register best: f32[1]
  register at: i32[1]
  for e in 0..D:
    d[j in 0 +: 128] += square(x[n, e] - c[j, e]) where j < K else 3e+38
  argmin d over 0 -> best, at within block through scratch
  label[n +: 1] = at
  dist[n +: 1] = best
