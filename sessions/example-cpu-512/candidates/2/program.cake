program matmul_bias_relu ir 1 target c x86-64-v4
  structure packed
  size M = 512
  size N = 512
  size K = 512
  const threads_x = 4 of 1 2 4 8 16 32
  const threads_y = 4 of 1 2 4 8 16 32
  const thread_m = 4 of 1 2 4 6 8 12 14
  const thread_n = 2 of 1 2 3 4
  const vector = 8 of 1 4 8 16
  const unroll = 1 of 1 2 4 8
  const block_k = 256 of 16 32 64 128 256 512 1024
  const pad = 0 of 0 1 4 8 16 32
  const tile_n = thread_n*vector
  param a: f32[M, K] align 4
  param b: f32[K, N] align 4
  param bias: f32[N] align 4
  param y: f32[M, N] out align 4
  workspace b_panels: f32[ceil(N/tile_n), K*tile_n] align 64 pad pad
launch pack grid tx = ceil(N/tile_n)
  for k in 0..K:
    copy b[k, n in tx*tile_n +: tile_n] -> b_panels[tx, k*tile_n +: tile_n] vector vector where n < N else 0
launch matmul grid by = ceil(M/(threads_y*thread_m)), bx = ceil(N/(threads_x*tile_n))
  shared a_panels: f32[threads_y, block_k*thread_m] align 64 pad pad
  shared sums: f32[threads_y*thread_m, threads_x*tile_n] align 64
  for kb in 0..ceil(K/block_k):
    for ty in by*threads_y..min((by + 1)*threads_y, ceil(M/thread_m)):
      for k in kb*block_k..min((kb + 1)*block_k, K):
        copy a[m in ty*thread_m +: thread_m, k] -> a_panels[ty - by*threads_y, (k - kb*block_k)*thread_m +: thread_m] where m < M else 0
    for tx in bx*threads_x..min((bx + 1)*threads_x, ceil(N/tile_n)):
      for ty in by*threads_y..min((by + 1)*threads_y, ceil(M/thread_m)):
        register acc: f32[thread_m, tile_n] spread lanes vector = 0
        if kb > 0:
          acc = sums[(ty - by*threads_y)*thread_m +: thread_m, (tx - bx*threads_x)*tile_n +: tile_n] vector vector
        for k in kb*block_k..min((kb + 1)*block_k, K) unroll unroll:
          acc += outer(a_panels[ty - by*threads_y, (k - kb*block_k)*thread_m +: thread_m], b_panels[tx, k*tile_n +: tile_n]) math fma
        if kb + 1 < ceil(K/block_k):
          sums[(ty - by*threads_y)*thread_m +: thread_m, (tx - bx*threads_x)*tile_n +: tile_n] = acc vector vector
        else:
          y[m in ty*thread_m +: thread_m, n in tx*tile_n +: tile_n] = relu(acc + bias[n]) vector vector where m < M and n < N
