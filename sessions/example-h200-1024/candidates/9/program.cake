program matmul_bias_relu ir 1 target cuda sm_90a
  structure warp_specialized
  size M = 1024
  size N = 1024 multiple 4
  size K = 1024 multiple 4
  const threads_x = 8 of 4 8 16 32 64
  const threads_y = 16 of 1 2 4 8 16 32
  const thread_m = 8 of 1 2 4 8 16
  const thread_n = 8 of 1 2 4 8 16
  const block_k = 32 of 8 16 32 64
  const vector = 4 of 1 2 4
  const unroll = 32 of 1 2 4 8 16 32
  const band = 1 of 1 2 4 8 16
  const stages = 4 of 2 3 4 5 6
  const slice_k = 2 of 1 2
  const fragments = 2 of 1 2
  const ptxas = 1 of 1 3
  const block_m = threads_y*thread_m
  const block_n = threads_x*thread_n
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch matmul grid bm = ceil(M/block_m), bn = ceil(N/block_n) threads slice_k*threads_x*threads_y + 32
  warp_role compute0 kind compute warps 0 to threads_x*threads_y/32 - 1
  warp_role compute1 kind compute warps threads_x*threads_y/32 to 2*threads_x*threads_y/32 - 1
  warp_role loader warps slice_k*threads_x*threads_y/32
  shared a_tile: f32[stages, block_m, block_k] align 1024 swizzle 128 ring
  shared b_tile: f32[stages, block_k, block_n] align 128 ring
  shared sums1: f32[block_m, block_n] align 16
  barrier full[stages] arrivals 1
  barrier free[stages] arrivals threads_x*threads_y/32
  role loader, one thread:
    for kb in 0..ceil(K/block_k) pipeline_stage stages:
      wait free[kb]
      expect full[kb] bytes 4*block_k*(block_m + block_n)
      tma_copy a[m in bm*block_m +: block_m, k in kb*block_k +: block_k] -> a_tile[kb] completes full[kb] where m < M and k < K else 0
      tma_copy b[k in kb*block_k +: block_k, n in bn*block_n +: block_n] -> b_tile[kb] completes full[kb] where k < K and n < N else 0
  role compute1:
    register acc1: f32[block_m, block_n] in compute1 spread threads_y x threads_x threads, thread_m x thread_n each, runs 1 x 4 = 0
    for kb in 1..ceil(K/block_k) step slice_k pipeline_stage stages:
      wait full[kb]
      for kk in 0..block_k unroll unroll pipeline_stage fragments:
        acc1 += outer(a_tile[kb, :, kk], b_tile[kb, kk, :]) math fma
      arrive free[kb] once a warp
    copy acc1 -> sums1 vector 4
    barrier named 1 threads slice_k*threads_x*threads_y
  role compute0:
    register acc: f32[block_m, block_n] in compute0 spread threads_y x threads_x threads, thread_m x thread_n each, runs 1 x 4 = 0
    for kb in 0..ceil(K/block_k) step slice_k pipeline_stage stages:
      wait full[kb]
      for kk in 0..block_k unroll unroll pipeline_stage fragments:
        acc += outer(a_tile[kb, :, kk], b_tile[kb, kk, :]) math fma
      arrive free[kb] once a warp
    barrier named 1 threads slice_k*threads_x*threads_y
    acc += sums1 vector 4
    y[m in bm*block_m +: block_m, n in bn*block_n +: block_n] = relu(acc + bias[n]) vector 4 where m < M and n < N
