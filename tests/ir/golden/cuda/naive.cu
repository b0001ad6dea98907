// matmul_bias_relu for sm_90a: naive()

constexpr int N = 1000;
constexpr int K = 1000;

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float relu(float x) { return max_nan(x, 0.0f); }

// --- kernel ---
extern "C" __global__ void __launch_bounds__(256) main_(const float *__restrict__ a, const float *__restrict__ b,
    const float *__restrict__ bias, float *__restrict__ y) {
  const int m = blockIdx.x;
  const int n = blockIdx.y;
  const int thread = threadIdx.x;
  const int ty = thread / 32;
  const int tx = thread % 32;
  float acc = 0.0f;
  for (int k = 0; k < K; ++k) {
    const int i = m * 8 + ty;
    const int j = n * 32 + tx;
    if (j < N)
      acc += a[i * K + k] * b[k * N + j];
  }
  {
    const int i = m * 8 + ty;
    const int j = n * 32 + tx;
    if (j < N)
      y[i * N + j] = relu(acc + bias[j]);
  }
}
