// A ring of three stages filled by cp.async, 16 bytes of b and 4 bytes of a at a time.
constexpr int BM = 32, BN = 32, BK = 8, STAGES = 3;

extern "C" __global__ void __launch_bounds__(64) cp_async_ring(
    const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ y,
    int M, int N, int K) {
  extern __shared__ __align__(16) float ring[];
  float (*const a_tile)[BK][BM] = reinterpret_cast<float (*)[BK][BM]>(ring);
  float (*const b_tile)[BK][BN] = reinterpret_cast<float (*)[BK][BN]>(ring + STAGES * BK * BM);
  const int steps = (K + BK - 1) / BK, m = threadIdx.x / 8 * 4, n = threadIdx.x % 8 * 4;
  float acc[4][4] = {};
  auto load = [&](int step) {
    for (int e = threadIdx.x; e < BM * BK; e += 64) {
      const int row = blockIdx.y * BM + e / BK, k = step * BK + e % BK;
      const bool inside = row < M && k < K;
      cp_async_part<4>(&a_tile[step % STAGES][e % BK][e / BK], inside ? &a[row * K + k] : a, inside ? 4 : 0);
    }
    const int k = step * BK + threadIdx.x / 8, column = blockIdx.x * BN + threadIdx.x % 8 * 4;
    const bool inside = k < K && column < N;
    float *const to = &b_tile[step % STAGES][threadIdx.x / 8][threadIdx.x % 8 * 4];
    cp_async_part<16>(to, inside ? &b[k * N + column] : b, inside ? 16 : 0);
  };
  for (int step = 0; step < STAGES - 1; step++) {
    if (step < steps) load(step);
    cp_async_commit();
  }
  for (int step = 0; step < steps; step++) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < steps) load(step + STAGES - 1);
    cp_async_commit();
    for (int k = 0; k < BK; k++) {
      const float4 x = *reinterpret_cast<const float4 *>(&a_tile[step % STAGES][k][m]);
      const float4 z = *reinterpret_cast<const float4 *>(&b_tile[step % STAGES][k][n]);
      const float xs[4] = {x.x, x.y, x.z, x.w}, zs[4] = {z.x, z.y, z.z, z.w};
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) acc[i][j] = fmaf(xs[i], zs[j], acc[i][j]);
    }
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      const int row = blockIdx.y * BM + m + i, column = blockIdx.x * BN + n + j;
      if (row < M && column < N) y[row * N + column] = fmaxf(acc[i][j] + bias[column], 0.0f);
    }
}
