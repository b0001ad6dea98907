program bias_gelu ir 1 target cuda sm_80
  size M = 4096
  size N = 4096 multiple 1024
  const T = 256
  const S = 3 of 2 3 4
  param x: f32[M, N] align 16
  param bias: f32[N] align 16
  param y: f32[M, N] out align 16
launch main grid c = N/(4*T), q = M/64 threads T
  shared bias_row: f32[4*T]
  shared rows: f32[S, 4*T] ring
  async_copy bias[c*4*T +: 4*T] -> bias_row vector 4 completes group loads
  for p in 0..S - 1:
    async_copy x[q*64 + p, c*4*T +: 4*T] -> rows[p] vector 4 completes group loads
    commit group loads
  for t in 0..64 pipeline_stage S:
    wait group loads pending S - 2
    barrier block
    y[q*64 + t, j in c*4*T +: 4*T] = gelu_tanh(rows[t, j - c*4*T] + bias_row[j - c*4*T]) vector 4
    if t + S - 1 < 64:
      async_copy x[q*64 + t + S - 1, c*4*T +: 4*T] -> rows[t + S - 1] vector 4 completes group loads
    commit group loads
