// matmul_bias_relu for sm_90a: naive()

constexpr int N = 4096;
constexpr int K = 4096;
constexpr int block_rows = 32;
constexpr int block_columns = 8;
constexpr int THREADS = block_rows * block_columns;

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float relu(float x) { return max_nan(x, 0.0f); }

// --- kernel ---
extern "C" __global__ void __launch_bounds__(THREADS) matmul(const float *__restrict__ a, const float *__restrict__ b,
    const float *__restrict__ bias, float *__restrict__ y) {
  const int bm = blockIdx.x;
  const int bn = blockIdx.y;
  const int thread = threadIdx.x;
  const int ty = thread % block_rows;
  const int tx = thread / block_rows;
  float acc = 0.0f;
  for (int k = 0; k < K; ++k) {
    const int m = bm * block_rows + ty;
    const int n = bn * block_columns + tx;
    acc += a[m * K + k] * b[k * N + n];
  }
  {
    const int m = bm * block_rows + ty;
    const int n = bn * block_columns + tx;
    y[m * N + n] = relu(acc + bias[n]);
  }
}
