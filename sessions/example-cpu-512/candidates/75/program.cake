program matmul_bias_relu ir 1 target c x86-64-v4
  structure tiled
  size M = 512
  size N = 512
  size K = 512
  const threads_x = 2 of 1 2 4 8 16 32
  const threads_y = 16 of 1 2 4 8 16 32
  const thread_m = 8 of 1 2 4 6 8 12 14
  const thread_n = 2 of 1 2 3 4
  const vector = 16 of 1 4 8 16
  const unroll = 1 of 1 2 4 8
  const block_k = 256 of 16 32 64 128 256 512 1024
  const tile_n = thread_n*vector
  param a: f32[M, K] align 4
  param b: f32[K, N] align 4
  param bias: f32[N] align 4
  param y: f32[M, N] out align 4
launch matmul grid by = ceil(M/(threads_y*thread_m)), bx = ceil(N/(threads_x*tile_n))
  shared sums: f32[threads_y*thread_m, threads_x*tile_n] align 64
  for kb in 0..ceil(K/block_k):
    for tx in bx*threads_x..min((bx + 1)*threads_x, ceil(N/tile_n)):
      for ty in by*threads_y..min((by + 1)*threads_y, ceil(M/thread_m)):
        register acc: f32[thread_m, tile_n] spread lanes vector = 0
        if kb > 0:
          acc = sums[(ty - by*threads_y)*thread_m +: thread_m, (tx - bx*threads_x)*tile_n +: tile_n] vector vector
        for k in kb*block_k..min((kb + 1)*block_k, K) unroll unroll:
          acc += outer(a[m in ty*thread_m +: thread_m, k], b[k, n in tx*tile_n +: tile_n]) math fma where m < M and n < N else 0
        if kb + 1 < ceil(K/block_k):
          sums[(ty - by*threads_y)*thread_m +: thread_m, (tx - bx*threads_x)*tile_n +: tile_n] = acc vector vector
        else:
          y[m in ty*thread_m +: thread_m, n in tx*tile_n +: tile_n] = relu(acc + bias[n]) vector vector where m < M and n < N
