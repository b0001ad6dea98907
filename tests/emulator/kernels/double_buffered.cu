// Two buffers of each tile: the next step is loaded into one while the other is read, one barrier a step.
constexpr int B = 16, BK = 8, BUFFERS = 2;

extern "C" __global__ void __launch_bounds__(256) double_buffered(
    const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ y,
    int M, int N, int K) {
  __shared__ float a_tile[BUFFERS][BK][B], b_tile[BUFFERS][BK][B];
  const int m = threadIdx.x / B, n = threadIdx.x % B, steps = (K + BK - 1) / BK;
  const int row = blockIdx.y * B + m, column = blockIdx.x * B + n;
  auto load = [&](int step) {
    const int to = step % BUFFERS, k = step * BK;
    if (n < BK) a_tile[to][n][m] = row < M && k + n < K ? a[row * K + k + n] : 0.0f;
    if (m < BK) b_tile[to][m][n] = column < N && k + m < K ? b[(k + m) * N + column] : 0.0f;
  };
  float acc = 0.0f;
  load(0);
  __syncthreads();
  for (int step = 0; step < steps; step++) {
    if (step + 1 < steps) load(step + 1);
    for (int k = 0; k < BK; k++) acc = fmaf(a_tile[step % BUFFERS][k][m], b_tile[step % BUFFERS][k][n], acc);
    __syncthreads();
  }
  if (row < M && column < N) y[row * N + column] = fmaxf(acc + bias[column], 0.0f);
}
