program matmul_bias_relu ir 1 target cuda sm_90a
  size M = 1024 multiple 128
  size N = 1024 multiple 64
  size K = 1024 multiple 64
  const BM = 128
  const BN = 64
  const BK = 64
  const S = 3 of 2 3
  param a: f32[M, K] align 16
  param b: f32[K, N] align 16
  param bias: f32[N]
  param y: f32[M, N] out
  workspace a_high: bf16[M, K] align 128
  workspace a_low: bf16[M, K] align 128
  workspace b_high: bf16[K, N] align 128
  workspace b_low: bf16[K, N] align 128
launch split_a grid r = M/64, c = K/64 threads 256
  register x: f32[64, 64] spread 16 x 16 threads, 4 x 4 each
  register high: bf16[64, 64] spread 16 x 16 threads, 4 x 4 each
  register low: bf16[64, 64] spread 16 x 16 threads, 4 x 4 each
  copy a[r*64 +: 64, c*64 +: 64] -> x vector 4
  split x -> high, low
  copy high -> a_high[r*64 +: 64, c*64 +: 64] vector 4
  copy low -> a_low[r*64 +: 64, c*64 +: 64] vector 4
launch split_b grid r = K/64, c = N/64 threads 256
  register x: f32[64, 64] spread 16 x 16 threads, 4 x 4 each
  register high: bf16[64, 64] spread 16 x 16 threads, 4 x 4 each
  register low: bf16[64, 64] spread 16 x 16 threads, 4 x 4 each
  copy b[r*64 +: 64, c*64 +: 64] -> x vector 4
  split x -> high, low
  copy high -> b_high[r*64 +: 64, c*64 +: 64] vector 4
  copy low -> b_low[r*64 +: 64, c*64 +: 64] vector 4
launch main grid n = N/BN, m = M/BM threads 384
  warp_role producer warps 0 to 3 registers 40
  warp_role consumer warps 4 to 11 registers 232
  shared ah: bf16[S, BM, BK] align 1024 swizzle 128 ring
  shared al: bf16[S, BM, BK] align 1024 swizzle 128 ring
  shared bh: bf16[S, BK, BN] align 1024 swizzle 128 ring
  shared bl: bf16[S, BK, BN] align 1024 swizzle 128 ring
  barrier full_high[S] arrivals 1
  barrier full_low[S] arrivals 1
  barrier free[S] arrivals 8
  role producer, one thread:
    for k in 0..K/BK pipeline_stage S:
      wait free[k]
      expect full_high[k] bytes 2*BK*(BM + BN)
      tma_copy a_high[m*BM +: BM, k*BK +: BK] -> ah[k] completes full_high[k]
      tma_copy b_high[k*BK +: BK, n*BN +: BN] -> bh[k] completes full_high[k]
      expect full_low[k] bytes 2*BK*(BM + BN)
      tma_copy a_low[m*BM +: BM, k*BK +: BK] -> al[k] completes full_low[k]
      tma_copy b_low[k*BK +: BK, n*BN +: BN] -> bl[k] completes full_low[k]
  role consumer:
    register acc: f32[BM, BN] in consumer spread fragment m64n64k16.acc = 0
    for k in 0..K/BK pipeline_stage S:
      wait full_high[k]
      fence wgmma
      acc += wgmma(ah[k], bh[k]) math bf16 completes group products
      wait full_low[k]
      acc += wgmma(ah[k], bl[k]) math bf16 completes group products
      acc += wgmma(al[k], bh[k]) math bf16 completes group products
      commit group products
      wait group products
      arrive free[k] once a warp
    y[m*BM +: BM, j in n*BN +: BN] = relu(acc + bias[j])
