// One loader warp moves boxes with the tensor memory accelerator, two compute warps multiply; they meet on mbarriers.
constexpr int BM = 16, BN = 32, BK = 8, STAGES = 4;

extern "C" __global__ void __launch_bounds__(96) roles(
    const float *__restrict__ bias, float *__restrict__ y, int M, int N, int K,
    const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map) {
  __shared__ __align__(128) float a_tile[STAGES][BM][BK];
  __shared__ __align__(128) float b_tile[STAGES][BK][BN];
  __shared__ mbarrier full[STAGES];
  __shared__ mbarrier free_[STAGES];
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&free_[s], 2);
    }
    barrier_init_fence();
  }
  __syncthreads();
  const int steps = (K + BK - 1) / BK;
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      unsigned free_phase = ~0u;
      for (int step = 0; step < steps; step++) {
        const int slot = step % STAGES;
        barrier_wait(&free_[slot], free_phase >> slot & 1);
        free_phase ^= 1u << slot;
        barrier_expect(&full[slot], 4 * BK * (BM + BN));
        tma_load(a_tile[slot], &a_map, &full[slot], step * BK, blockIdx.y * BM);
        tma_load(b_tile[slot], &b_map, &full[slot], blockIdx.x * BN, step * BK);
      }
    }
    return;
  }
  const int thread = threadIdx.x - 32, m = thread / 8 * 2, n = thread % 8 * 4;
  unsigned full_phase = 0;
  float acc[2][4] = {};
  for (int step = 0; step < steps; step++) {
    const int slot = step % STAGES;
    barrier_wait(&full[slot], full_phase >> slot & 1);
    full_phase ^= 1u << slot;
    for (int k = 0; k < BK; k++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) acc[i][j] = fmaf(a_tile[slot][m + i][k], b_tile[slot][k][n + j], acc[i][j]);
    __syncwarp();
    if (thread % 32 == 0) barrier_arrive(&free_[slot]);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++) {
      const int row = blockIdx.y * BM + m + i, column = blockIdx.x * BN + n + j;
      if (row < M && column < N) y[row * N + column] = fmaxf(acc[i][j] + bias[column], 0.0f);
    }
}
