program matmul_bias_relu ir 1 target cuda sm_90a
  structure tiled
  size M = 4096
  size N = 4096 multiple 4
  size K = 4096 multiple 4
  const threads_x = 16 of 4 8 16 32 64
  const threads_y = 8 of 1 2 4 8 16 32
  const thread_m = 8 of 1 2 4 8 16
  const thread_n = 8 of 1 2 4 8 16
  const block_k = 16 of 8 16 32 64
  const vector = 4 of 1 2 4
  const unroll = 32 of 1 2 4 8 16 32
  const pad = 4 of 0 1 2 4 8
  const band = 8 of 1 2 4 8 16
  const block_m = threads_y*thread_m
  const block_n = threads_x*thread_n
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch matmul grid bm = ceil(M/block_m), bn = ceil(N/block_n) order grouped band threads threads_x*threads_y
  shared a_tile: f32[block_m, block_k] align 16 order 1 0 pad pad
  shared b_tile: f32[block_k, block_n] align 16
  register acc: f32[block_m, block_n] spread threads_y x threads_x threads, thread_m x thread_n each = 0
  for kb in 0..ceil(K/block_k):
    register a_part: f32[block_m, block_k] spread 32 x block_k/vector threads, block_m/32 x vector each, runs 1 x vector
    copy a[m in bm*block_m +: block_m, k in kb*block_k +: block_k] -> a_part vector vector where m < M and k < K else 0
    copy a_part -> a_tile
    copy b[k in kb*block_k +: block_k, n in bn*block_n +: block_n] -> b_tile vector vector where k < K and n < N else 0
    barrier block
    for kk in 0..block_k unroll unroll:
      acc += outer(a_tile[:, kk], b_tile[kk, :]) math fma
    barrier block
  y[m in bm*block_m +: block_m, n in bn*block_n +: block_n] = relu(acc + bias[n]) vector 4 where m < M and n < N
