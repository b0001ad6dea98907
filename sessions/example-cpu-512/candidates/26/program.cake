program matmul_bias_relu ir 1 target c x86-64-v4
  structure split_k
  size M = 512
  size N = 512
  size K = 512
  const threads_x = 4 of 1 2 4 8 16 32
  const threads_y = 4 of 1 2 4 8 16 32
  const thread_m = 14 of 1 2 4 6 8 12 14
  const thread_n = 1 of 1 2 3 4
  const vector = 16 of 1 4 8 16
  const unroll = 2 of 1 2 4 8
  const split_k = 2 of 2 4 8 16
  const tile_n = thread_n*vector
  param a: f32[M, K] align 4
  param b: f32[K, N] align 4
  param bias: f32[N] align 4
  param y: f32[M, N] out align 4
  workspace partial: f32[split_k, M, N] align 64
launch matmul grid part = split_k, by = ceil(M/(threads_y*thread_m)), bx = ceil(N/(threads_x*tile_n))
  for tx in bx*threads_x..min((bx + 1)*threads_x, ceil(N/tile_n)):
    for ty in by*threads_y..min((by + 1)*threads_y, ceil(M/thread_m)):
      register acc: f32[thread_m, tile_n] spread lanes vector = 0
      for k in part*ceil(K/split_k)..min((part + 1)*ceil(K/split_k), K) unroll unroll:
        acc += outer(a[m in ty*thread_m +: thread_m, k], b[k, n in tx*tile_n +: tile_n]) math fma where m < M and n < N else 0
      partial[part, m in ty*thread_m +: thread_m, n in tx*tile_n +: tile_n] = acc vector vector where m < M and n < N
launch combine grid by = ceil(M/(threads_y*thread_m))
  for m in by*threads_y*thread_m..min((by + 1)*threads_y*thread_m, M):
    for tx in 0..ceil(N/tile_n):
      register acc: f32[tile_n] spread lanes vector = 0
      for part in 0..split_k:
        acc += partial[part, m, n in tx*tile_n +: tile_n] vector vector where n < N else 0
      y[m, n in tx*tile_n +: tile_n] = relu(acc + bias[n]) vector vector where n < N
