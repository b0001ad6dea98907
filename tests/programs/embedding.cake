program embed ir 1 target cuda sm_80
  size V = 50000
  size T = 2048
  size D = 1024
  param table: f32[V, D] align 16
  param ids: i32[T]
  param y: f32[T, D] out align 16
launch main grid t = T threads 256
  y[t, d in 0 +: D] = table[ids[t], d] vector 4
