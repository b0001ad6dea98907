program attention ir 1 target cuda sm_90a
  size L = 1024
  size D = 64
  const BM = 64
  const BN = 64
  const S = 2
  param q: f32[L, D] align 16
  param k: f32[L, D] align 16
  param v: f32[L, D] align 16
  param o: f32[L, D] out
launch main grid m = L/BM threads 256
  shared q_tile: f32[BM, D] pad 4
  shared k_tile: f32[S, BN, D] pad 4 ring
  shared v_tile: f32[S, BN, D] ring
  shared p_tile: f32[BM, BN] pad 4
  register acc: f32[BM, D] spread 16 x 16 threads, 4 x 4 each = 0
  register top: f32[BM] spread 16 threads, 4 each = -3e+38
  register total: f32[BM] spread 16 threads, 4 each = 0
  async_copy q[m*BM +: BM, :] -> q_tile vector 4 completes group loads
  async_copy k[0 +: BN, :] -> k_tile[0] vector 4 completes group loads
  async_copy v[0 +: BN, :] -> v_tile[0] vector 4 completes group loads
  commit group loads
  for t in 0..L/BN pipeline_stage S carry acc, top, total:
    if t + 1 < L/BN:
      async_copy k[(t + 1)*BN +: BN, :] -> k_tile[t + 1] vector 4 completes group loads
      async_copy v[(t + 1)*BN +: BN, :] -> v_tile[t + 1] vector 4 completes group loads
    commit group loads
    wait group loads pending 1
    barrier block
    register s: f32[BM, BN] spread 16 x 16 threads, 4 x 4 each = 0
    for d in 0..D:
      s += outer(q_tile[:, d], k_tile[t, :, d]) math fma
    register new: f32[BM] spread 16 threads, 4 each
    register row: f32[BM] spread 16 threads, 4 each
    reduce s over 1 with max -> row within warp
    new = max(top, row)
    s[i in 0 +: BM, j in 0 +: BN] = exp(s[i, j] - new[i])
    reduce s over 1 with add -> row within warp
    total = total*exp(top - new) + row
    acc[i in 0 +: BM, j in 0 +: D] = acc[i, j]*exp(top[i] - new[i])
    top = new
    copy s -> p_tile
    barrier block
    for n in 0..BN:
      acc += outer(p_tile[:, n], v_tile[t, n, :]) math fma
    barrier block
  o[i in m*BM +: BM, j in 0 +: D] = acc[i - m*BM, j]/total[i - m*BM]
