program kmeans_assign ir 1 target cuda sm_90a
  size N = 1024 multiple 256
  size D = 64
  size K = 16
  const P = 32 of 32 64
  const S = 4 of 2 4
  param x: f32[N, D] align 16
  param c: f32[K, D] align 16
  param label: i32[N] out
launch assign grid b = 4 threads 64
  warp_role loader warps 0
  warp_role compute warps 1
  shared points: f32[S, P, D] align 128 ring
  shared centres: f32[K, D] align 128
  barrier full[S] arrivals 1
  barrier free[S] arrivals 32
  barrier ready[1] arrivals 1
  role loader, one thread:
    expect ready[0] bytes 4*K*D
    tma_copy c -> centres completes ready[0]
    for t in 0..N/4/P pipeline_stage S:
      wait free[t]
      expect full[t] bytes 4*P*D
      tma_copy x[b*N/4 + t*P +: P, :] -> points[t] completes full[t]
  role compute:
    wait ready[0]
    for t in 0..N/4/P pipeline_stage S:
      register best: f32[P] in compute spread 32 threads, P/32 each = inf
      register nearest: i32[P] in compute spread 32 threads, P/32 each = 0
      wait full[t]
      for k in 0..K carry best, nearest:
        register d: f32[P, 1] in compute spread 32 x 1 threads, P/32 x 1 each = 0
        for e in 0..D unroll 8:
          d[i in 0 +: P, 0] += square(points[t, i, e] - centres[k, e])
        argmin d over 1 from k -> best, nearest carry
      arrive free[t]
      copy nearest -> label[b*N/4 + t*P +: P]
