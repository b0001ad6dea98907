program matmul_bias_relu ir 1 target cuda sm_90a
  structure split_k
  size M = 1024
  size N = 1024 multiple 4
  size K = 1024 multiple 4
  const threads_x = 16 of 4 8 16 32 64
  const threads_y = 8 of 1 2 4 8 16 32
  const thread_m = 8 of 1 2 4 8 16
  const thread_n = 8 of 1 2 4 8 16
  const block_k = 16 of 8 16 32 64
  const vector = 4 of 1 2 4
  const unroll = 32 of 1 2 4 8 16 32
  const pad = 4 of 0 1 2 4 8
  const band = 1 of 1 2 4 8 16
  const stages = 2 of 2 3 4 5 6
  const split_k = 4 of 2 4 8 16
  const block_m = threads_y*thread_m
  const block_n = threads_x*thread_n
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
  workspace partial: f32[split_k, M, N] align 64
launch matmul grid part = split_k, bm = ceil(M/block_m), bn = ceil(N/block_n) threads threads_x*threads_y
  shared a_tile: f32[stages, block_m, block_k] align 16 order 0 2 1 pad pad ring
  shared b_tile: f32[stages, block_k, block_n] align 16 ring
  register acc: f32[block_m, block_n] spread threads_y x threads_x threads, thread_m x thread_n each = 0
  for slot in 0..stages - 1:
    if slot < min(ceil(ceil(K/block_k)/split_k), ceil(K/block_k) - part*ceil(ceil(K/block_k)/split_k)):
      async_copy a[m in bm*block_m +: block_m, k in (part*ceil(ceil(K/block_k)/split_k) + slot)*block_k +: block_k] -> a_tile[slot] completes group loads where m < M and k < K else 0
      async_copy b[k in (part*ceil(ceil(K/block_k)/split_k) + slot)*block_k +: block_k, n in bn*block_n +: block_n] -> b_tile[slot] vector vector completes group loads where k < K and n < N else 0
    commit group loads
  for kb in 0..min(ceil(ceil(K/block_k)/split_k), ceil(K/block_k) - part*ceil(ceil(K/block_k)/split_k)) pipeline_stage stages:
    wait group loads pending stages - 2
    barrier block
    if kb + stages - 1 < min(ceil(ceil(K/block_k)/split_k), ceil(K/block_k) - part*ceil(ceil(K/block_k)/split_k)):
      async_copy a[m in bm*block_m +: block_m, k in (part*ceil(ceil(K/block_k)/split_k) + (kb + stages - 1))*block_k +: block_k] -> a_tile[kb + stages - 1] completes group loads where m < M and k < K else 0
      async_copy b[k in (part*ceil(ceil(K/block_k)/split_k) + (kb + stages - 1))*block_k +: block_k, n in bn*block_n +: block_n] -> b_tile[kb + stages - 1] vector vector completes group loads where k < K and n < N else 0
    commit group loads
    for kk in 0..block_k unroll unroll:
      acc += outer(a_tile[kb, :, kk], b_tile[kb, kk, :]) math fma
  partial[part, m in bm*block_m +: block_m, n in bn*block_n +: block_n] = acc vector 4 where m < M and n < N
launch combine grid m = M, bn = ceil(N/(256*vector)) threads 256
  register acc: f32[256*vector] spread 256 threads, vector each = 0
  for part in 0..split_k unroll split_k:
    acc += partial[part, m, n in bn*(256*vector) +: 256*vector] vector vector where n < N else 0
  y[m, n in bn*(256*vector) +: 256*vector] = relu(acc + bias[n]) vector vector where n < N
