program matmul_bias_relu ir 1 target cuda sm_90a
  structure warp_specialized
  size M = 4096
  size N = 4096 multiple 4
  size K = 4096 multiple 4
  const threads_x = 32 of 4 8 16 32 64
  const threads_y = 8 of 1 2 4 8 16 32
  const thread_m = 16 of 1 2 4 8 16
  const thread_n = 8 of 1 2 4 8 16
  const block_k = 16 of 8 16 32 64
  const vector = 4 of 1 2 4
  const unroll = 32 of 1 2 4 8 16 32
  const pad = 4 of 0 1 2 4 8
  const band = 1 of 1 2 4 8 16
  const stages = 4 of 2 3 4 5 6
  const loaders = 4 of 1 2 4 8
  const block_m = threads_y*thread_m
  const block_n = threads_x*thread_n
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch matmul grid bm = ceil(M/block_m), bn = ceil(N/block_n) threads threads_x*threads_y + 32*loaders
  warp_role compute warps 0 to threads_x*threads_y/32 - 1
  warp_role loader warps threads_x*threads_y/32 to threads_x*threads_y/32 + loaders - 1
  shared a_tile: f32[stages, block_m, block_k] align 16 order 0 2 1 pad pad ring
  shared b_tile: f32[stages, block_k, block_n] align 16 ring
  barrier full[stages] arrivals 32*loaders
  barrier free[stages] arrivals threads_x*threads_y/32
  role loader:
    for kb in 0..ceil(K/block_k) pipeline_stage stages:
      wait free[kb]
      async_copy a[m in bm*block_m +: block_m, k in kb*block_k +: block_k] -> a_tile[kb] completes full[kb] where m < M and k < K else 0
      async_copy b[k in kb*block_k +: block_k, n in bn*block_n +: block_n] -> b_tile[kb] vector vector completes full[kb] where k < K and n < N else 0
      arrive full[kb]
  role compute:
    register acc: f32[block_m, block_n] in compute spread threads_y x threads_x threads, thread_m x thread_n each = 0
    for kb in 0..ceil(K/block_k) pipeline_stage stages:
      wait full[kb]
      for kk in 0..block_k unroll unroll:
        acc += outer(a_tile[kb, :, kk], b_tile[kb, kk, :]) math fma
      arrive free[kb] once a warp
    y[m in bm*block_m +: block_m, n in bn*block_n +: block_n] = relu(acc + bias[n]) vector 4 where m < M and n < N
