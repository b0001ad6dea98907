program mm ir 1 target cuda sm_90a
  size M = 128
  size N = 64
  size K = 512
  param a: bf16[M, K] align 16
  param b: bf16[K, N] align 16
  param y: f32[M, N] out
launch main threads 128
  shared at: bf16[128, 64] align 1024 swizzle 128
  shared bt: bf16[64, 64] align 1024 swizzle 128
  register acc: f32[128, 64] spread fragment m64n64k16.acc = 0
  for k in 0..K/64:
    async_copy a[:, k*64 +: 64] -> at vector 8 completes group loads
    async_copy b[k*64 +: 64, :] -> bt vector 8 completes group loads
    commit group loads
    wait group loads
    fence async_proxy
    barrier block
    fence wgmma
    acc += wgmma(at, bt) math bf16 completes group products
    commit group products
    wait group products
    barrier block
  copy acc -> y
