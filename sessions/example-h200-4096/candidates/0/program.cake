program matmul_bias_relu ir 1 target cuda sm_90a
  structure naive
  size M = 4096
  size N = 4096
  size K = 4096
  const block_rows = 32
  const block_columns = 8
  param a: f32[M, K] align 4
  param b: f32[K, N] align 4
  param bias: f32[N] align 4
  param y: f32[M, N] out align 4
launch matmul grid bn = ceil(N/block_columns), bm = ceil(M/block_rows) threads block_rows*block_columns
  register acc: f32[block_rows, block_columns] order 1 0 spread block_rows x block_columns threads, 1 x 1 each = 0
  for k in 0..K:
    acc += outer(a[m in bm*block_rows +: block_rows, k], b[k, n in bn*block_columns +: block_columns]) math fma where m < M and n < N else 0
  y[m in bm*block_rows +: block_rows, n in bn*block_columns +: block_columns] = relu(acc + bias[n]) where m < M and n < N
