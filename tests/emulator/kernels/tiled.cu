// Tiles of both operands in shared memory, one buffer: a barrier before they are read and one before they are written.
constexpr int BM = 16, BN = 32, BK = 8;

extern "C" __global__ void __launch_bounds__(128) tiled(
    const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ y,
    int M, int N, int K) {
  __shared__ float a_tile[BK][BM + 4];
  __shared__ __align__(16) float b_tile[BK][BN];
  const int m = threadIdx.x / 8, n = threadIdx.x % 8 * 4;
  float acc[4] = {};
  for (int k = 0; k < K; k += BK) {
    const int i = threadIdx.x % BM, kk = threadIdx.x / BM;
    const int row = blockIdx.y * BM + i;
    a_tile[kk][i] = row < M && k + kk < K ? a[row * K + k + kk] : 0.0f;
    for (int e = threadIdx.x; e < BK * BN; e += 128) {
      const int column = blockIdx.x * BN + e % BN;
      b_tile[e / BN][e % BN] = column < N && k + e / BN < K ? b[(k + e / BN) * N + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < BK; step++) {
      const float x = a_tile[step][m];
      const float4 z = *reinterpret_cast<const float4 *>(&b_tile[step][n]);
      acc[0] = fmaf(x, z.x, acc[0]);
      acc[1] = fmaf(x, z.y, acc[1]);
      acc[2] = fmaf(x, z.z, acc[2]);
      acc[3] = fmaf(x, z.w, acc[3]);
    }
    __syncthreads();
  }
  for (int e = 0; e < 4; e++) {
    const int row = blockIdx.y * BM + m, column = blockIdx.x * BN + n + e;
    if (row < M && column < N) y[row * N + column] = fmaxf(acc[e] + bias[column], 0.0f);
  }
}
