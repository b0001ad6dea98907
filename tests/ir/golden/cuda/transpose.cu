// transpose for sm_80

constexpr int M = 1000;
constexpr int N = 777;

extern "C" __global__ void __launch_bounds__(256) main_(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ __align__(16) float t[1056];
  const int m = blockIdx.x;
  const int n = blockIdx.y;
  const int thread = threadIdx.x;
  const int t_row = thread / 32;
  const int t_col = thread % 32;
  #pragma unroll
  for (int step = 0; step < 32; step += 256 / 32) {
    const int i = m * 32 + step + t_row;
    const int j = n * 32 + t_col;
    t[(step + t_row) * 33 + t_col] = i < M && j < N ? x[i * N + j] : 0.0f;
  }
  __syncthreads();
  #pragma unroll
  for (int step = 0; step < 32; step += 256 / 32) {
    const int j = n * 32 + step + t_row;
    const int i = m * 32 + t_col;
    if (i < M && j < N)
      y[j * M + i] = t[(i - m * 32) * 33 + j - n * 32];
  }
}
