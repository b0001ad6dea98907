// row_sum for sm_80

constexpr int R = 4099;
constexpr int C = 1003;

struct Add {
  template <typename T>
  __device__ __forceinline__ static T of(T a, T b) { return a + b; }
};

// Over THREADS lanes of a warp that stand STRIDE apart.
template <typename Op, int THREADS, int STRIDE, typename T>
__device__ __forceinline__ T warp_reduce(T x) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) x = Op::of(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}

template <typename A, typename B>
__device__ constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

// --- kernel ---
extern "C" __global__ void __launch_bounds__(256) main_(const float *__restrict__ x, float *__restrict__ y) {
  const int r = blockIdx.x;
  const int thread = threadIdx.x;
  const int ty = thread / 32;
  const int tx = thread % 32;
  float total = 0.0f;
  float row;
  #pragma unroll 4
  for (int c = 0; c < ceil_div(C, 32); ++c)
    total += r * 8 + ty < R && c * 32 + tx < C ? x[(r * 8 + ty) * C + c * 32 + tx] : 0.0f;
  row = warp_reduce<Add, 32, 1>(total);
  if (thread % 32 == 0) {
    const int i = r * 8 + ty;
    if (i < R)
      y[i] = row;
  }
}
