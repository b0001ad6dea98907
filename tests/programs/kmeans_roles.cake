program kmeans_assign ir 1 target cuda sm_90a
  size N = 1024 multiple 256
  size D = 64
  size K = 16
  const P = 64 of 32 64
  param x: f32[N, D] align 16
  param c: f32[K, D] align 16
  param label: i32[N] out
launch assign grid b = 4 threads 256
  warp_role loader warps 0 to 3
  warp_role compute warps 4 to 7
  shared points: f32[2, P, D] pad 4 ring
  shared centres: f32[K, D] pad 4
  barrier full[2] arrivals 128
  barrier free[2] arrivals 4
  barrier ready[1] arrivals 128
  role loader:
    async_copy c -> centres vector 4 completes ready[0]
    arrive ready[0]
    for t in 0..N/4/P pipeline_stage 2:
      wait free[t]
      async_copy x[b*N/4 + t*P +: P, :] -> points[t] vector 4 completes full[t]
      arrive full[t]
  role compute:
    wait ready[0]
    for t in 0..N/4/P pipeline_stage 2:
      register best: f32[P] in compute spread P threads, 1 each = inf
      register nearest: i32[P] in compute spread P threads, 1 each = 0
      wait full[t]
      for k in 0..K carry best, nearest:
        register d: f32[P, 1] in compute spread P x 1 threads, 1 x 1 each = 0
        for e in 0..D unroll 8:
          d[i in 0 +: P, 0] += square(points[t, i, e] - centres[k, e])
        argmin d over 1 from k -> best, nearest carry
      arrive free[t] once a warp
      copy nearest -> label[b*N/4 + t*P +: P]
