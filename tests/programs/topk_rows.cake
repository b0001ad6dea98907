program topk_rows ir 1 target cuda sm_90a
  size R = 4096
  size C = 1000
  const K = 8
  const W = 32
  param x: f32[R, C]
  param values: f32[R, K] out
  param indices: i32[R, K] out
launch main grid r = R threads 32
  register best: f32[K] = -3e+38
  register place: i32[K] = 0
  for c in 0..ceil(C/W) carry best, place:
    register v: f32[W] spread W threads, 1 each
    copy x[r, j in c*W +: W] -> v where j < C else -3e+38
    topk K v over 0 from c*W -> best, place within warp carry
  copy best -> values[r, :]
  copy place -> indices[r, :]
