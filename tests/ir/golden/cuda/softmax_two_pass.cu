// softmax for sm_90a

constexpr int C = 1000;
constexpr int T = 256;

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

struct Add {
  template <typename T>
  __device__ __forceinline__ static T of(T a, T b) { return a + b; }
};

struct Maximum {
  template <typename T>
  __device__ __forceinline__ static T of(T a, T b) { return max_nan(a, b); }
};

// Over THREADS lanes of a warp that stand STRIDE apart.
template <typename Op, int THREADS, int STRIDE, typename T>
__device__ __forceinline__ T warp_reduce(T x) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) x = Op::of(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}

// Over the threads of a block of WARPS warps; `scratch` has an element a warp and may be in use until all are here.
template <typename Op, int WARPS, typename T>
__device__ __forceinline__ T block_reduce(T x, T *scratch) {
  x = warp_reduce<Op, 32, 1>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int warp = 1; warp < WARPS; ++warp) x = Op::of(x, scratch[warp]);
  return x;
}

template <typename A, typename B>
__device__ constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

// --- kernel ---
extern "C" __global__ void __launch_bounds__(T) main_(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ __align__(16) float scratch[32];
  const int r = blockIdx.x;
  const int thread = threadIdx.x;
  float top = -3e+38f;
  float total = 0.0f;
  float row_top;
  float row_total;
  for (int c = 0; c < ceil_div(C, T); ++c) {
    float v;
    float larger;
    {
      const int j = c * T + thread;
      v = j < C ? x[r * C + j] : -3e+38f;
    }
    larger = max_nan(top, v);
    total = total * expf(top - larger) + (v > -3e+38f ? expf(v - larger) : 0.0f);
    top = larger;
  }
  row_top = block_reduce<Maximum, 8>(top, scratch);
  total = total * expf(top - row_top);
  row_total = block_reduce<Add, 8>(total, scratch);
  for (int c = 0; c < ceil_div(C, T); ++c) {
    const int j = c * T + thread;
    if (j < C)
      y[r * C + j] = expf(x[r * C + j] - row_top) / row_total;
  }
}
