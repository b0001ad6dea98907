// matmul_bias_relu for sm_80

constexpr int M = 1000;
constexpr int N = 1000;
constexpr int K = 1000;
constexpr int BM = 64;
constexpr int BN = 64;
constexpr int BK = 16;
constexpr int S = 4;

// The first `bytes` of BYTES are copied, the others become zero; with none the source is not touched.
template <int BYTES>
__device__ __forceinline__ void cp_async_part(void *shared, const void *global, int bytes) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(BYTES), "r"(bytes)
                 : "memory");
}

template <int BYTES>
__device__ __forceinline__ void cp_async_or_zero(void *shared, const void *global, bool inside) {
  cp_async_part<BYTES>(shared, global, inside ? BYTES : 0);
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until at most PENDING of this thread's groups are unfinished.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float relu(float x) { return max_nan(x, 0.0f); }

template <int N, typename T>
struct __align__(N * sizeof(T)) Vector {
  T at[N];
};

template <int N, typename T>
__device__ __forceinline__ void load_vector(T *to, const T *from) {
  const Vector<N, T> vector = *reinterpret_cast<const Vector<N, T> *>(from);
#pragma unroll
  for (int n = 0; n < N; ++n) to[n] = vector.at[n];
}

template <typename A, typename B>
__device__ constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

// --- kernel ---
extern "C" __global__ void __launch_bounds__(256) main_(const float *__restrict__ a, const float *__restrict__ b,
    const float *__restrict__ bias, float *__restrict__ y) {
  __shared__ __align__(16) float a_tile[S * BM * (BK + 4)];
  __shared__ __align__(16) float b_tile[S * BK * BN];
  const int m = blockIdx.x;
  const int n = blockIdx.y;
  const int thread = threadIdx.x;
  const int ty = thread / 16;
  const int tx = thread % 16;
  const int a_row = thread / (BK / 4);
  const int a_col = thread % (BK / 4) * 4;
  const int b_row = thread / (BN / 4);
  const int b_col = thread % (BN / 4) * 4;
  float acc[4][4] = {};
  for (int p = 0; p < S - 1; ++p) {
    {
      const int i = m * BM + a_row;
      const int k = p * BK + a_col;
      cp_async_or_zero<16>(&a_tile[(p * BM + a_row) * (BK + 4) + a_col], &a[i * K + k], i < M);
    }
    {
      const int k = p * BK + b_row;
      const int j = n * BN + b_col;
      cp_async_or_zero<16>(&b_tile[(p * BK + b_row) * BN + b_col], &b[k * N + j], j < N);
    }
    cp_async_commit();
  }
  for (int t = 0; t < ceil_div(K, BK); ++t) {
    const int slot = t % S;
    cp_async_wait<S - 2>();
    __syncthreads();
    if (t + S - 1 < ceil_div(K, BK)) {
      {
        const int i = m * BM + a_row;
        const int k = (t + S - 1) * BK + a_col;
        cp_async_or_zero<16>(&a_tile[((t + S - 1) % S * BM + a_row) * (BK + 4) + a_col], &a[i * K + k], i < M && k < K);
      }
      {
        const int k = (t + S - 1) * BK + b_row;
        const int j = n * BN + b_col;
        cp_async_or_zero<16>(&b_tile[((t + S - 1) % S * BK + b_row) * BN + b_col], &b[k * N + j], k < K && j < N);
      }
    }
    cp_async_commit();
    #pragma unroll 2
    for (int kk = 0; kk < BK; kk += 4) {
      float left[4][4];
      #pragma unroll
      for (int ii = 0; ii < 4; ++ii)
        load_vector<4>(left[ii], &a_tile[(slot * BM + ty * 4) * (BK + 4) + kk] + ii * (BK + 4));
      #pragma unroll
      for (int step = 0; step < 4; ++step) {
        float right[4];
        load_vector<4>(&right[0], &b_tile[(slot * BK + kk) * BN + tx * 4] + step * BN);
        #pragma unroll
        for (int ii = 0; ii < 4; ++ii) {
          #pragma unroll
          for (int jj = 0; jj < 4; ++jj)
            acc[ii][jj] += left[ii][step] * right[jj];
        }
      }
    }
  }
  #pragma unroll
  for (int ii = 0; ii < 4; ++ii) {
    #pragma unroll
    for (int jj = 0; jj < 4; ++jj) {
      const int i = m * BM + ty * 4 + ii;
      const int j = n * BN + tx * 4 + jj;
      if (i < M && j < N)
        y[i * N + j] = relu(acc[ii][jj] + bias[j]);
    }
  }
}
