program sums_of_rows ir 1 target cuda sm_80
  size R = 1024
  size C = 4096 multiple 1024
  const T = 256
  param a: f32[R, C] align 16
  param b: f32[R, C] align 16
  param sum_a: f32[R] out
  param sum_b: f32[R] out
launch main grid r = R threads T
  shared a_row: f32[4*T] align 16
  shared b_row: f32[4*T] align 16
  shared scratch: f32[32]
  register part_a: f32[T] spread T threads, 1 each = 0
  register part_b: f32[T] spread T threads, 1 each = 0
  register total_a: f32[1]
  register total_b: f32[1]
  for c in 0..C/(4*T):
    async_copy a[r, c*4*T +: 4*T] -> a_row vector 4 completes group rows
    commit group rows
    async_copy b[r, c*4*T +: 4*T] -> b_row vector 4 completes group rows
    commit group rows
    wait group rows pending 1
    barrier block
    part_a[t in 0 +: T] += a_row[t] + a_row[t + T] + a_row[t + 2*T] + a_row[t + 3*T]
    wait group rows
    barrier block
    part_b[t in 0 +: T] += b_row[t] + b_row[t + T] + b_row[t + 2*T] + b_row[t + 3*T]
    barrier block
  reduce part_a over 0 with add -> total_a within block through scratch
  reduce part_b over 0 with add -> total_b within block through scratch
  sum_a[r +: 1] = total_a
  sum_b[r +: 1] = total_b
