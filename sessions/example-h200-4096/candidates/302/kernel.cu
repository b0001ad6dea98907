// matmul_bias_relu for sm_90a: pipelined(threads_x=32, threads_y=8, thread_m=8, thread_n=8, block_k=16, vector=4, pad=4, band=2, stages=2)

constexpr int M = 4096;
constexpr int N = 4096;
constexpr int K = 4096;
constexpr int threads_x = 32;
constexpr int threads_y = 8;
constexpr int thread_m = 8;
constexpr int thread_n = 8;
constexpr int block_k = 16;
constexpr int vector = 4;
constexpr int pad = 4;
constexpr int band = 2;
constexpr int stages = 2;
constexpr int block_m = threads_y * thread_m;
constexpr int block_n = threads_x * thread_n;
constexpr int THREADS = threads_x * threads_y;

template <int BYTES>
__device__ __forceinline__ void cp_async(void *shared, const void *global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(BYTES) : "memory");
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

template <int N, typename T>
__device__ __forceinline__ void store_vector(T *to, const T *from) {
  Vector<N, T> vector;
#pragma unroll
  for (int n = 0; n < N; ++n) vector.at[n] = from[n];
  *reinterpret_cast<Vector<N, T> *>(to) = vector;
}

template <typename A, typename B>
__device__ constexpr auto least(A a, B b) {
  return a < b ? a : b;
}

// --- kernel ---
extern "C" __global__ void __launch_bounds__(THREADS) matmul(const float *__restrict__ a, const float *__restrict__ b,
    const float *__restrict__ bias, float *__restrict__ y) {
  __shared__ __align__(16) float a_tile[stages * block_k * (block_m + pad)];
  __shared__ __align__(16) float b_tile[stages * block_k * block_n];
  const int block = blockIdx.x;
  const int first_row = block / (band * (N / block_n)) * band;
  const int rows = least(band, M / block_m - first_row);
  const int bm = first_row + block % (band * (N / block_n)) % rows;
  const int bn = block % (band * (N / block_n)) / rows;
  const int thread = threadIdx.x;
  // A warp covers 4 x 8 threads, neighbours in pairs: halves of it share their reads.
  const int ty = thread / 32 / 4 * 4 + thread % 32 / 16 * 2 + thread % 2;
  const int tx = thread / 32 % 4 * 8 + thread / 2 % 8;
  const int a_row = thread / block_k;
  const int a_col = thread % block_k;
  const int b_row = thread / (block_n / vector);
  const int b_col = thread % (block_n / vector) * vector;
  float acc[thread_m][thread_n] = {};
  #pragma unroll
  for (int step = 0; step < block_m; step += THREADS / block_k) {
    const int m = bm * block_m + step + a_row;
    const int k = a_col;
    cp_async<4>(&a_tile[a_col * (block_m + pad) + step + a_row], &a[m * K + k]);
  }
  #pragma unroll
  for (int step = 0; step < block_k; step += THREADS / (block_n / vector)) {
    const int k = step + b_row;
    const int n = bn * block_n + b_col;
    cp_async<16>(&b_tile[(step + b_row) * block_n + b_col], &b[k * N + n]);
  }
  cp_async_commit();
  for (int kb = 0; kb < K / block_k; ++kb) {
    const int slot_ = kb % stages;
    cp_async_wait<stages - 2>();
    __syncthreads();
    if (kb + stages - 1 < K / block_k) {
      #pragma unroll
      for (int step = 0; step < block_m; step += THREADS / block_k) {
        const int m = bm * block_m + step + a_row;
        const int k = (kb + stages - 1) * block_k + a_col;
        cp_async<4>(&a_tile[((kb + stages - 1) % stages * block_k + a_col) * (block_m + pad) + step + a_row],
            &a[m * K + k]);
      }
      #pragma unroll
      for (int step = 0; step < block_k; step += THREADS / (block_n / vector)) {
        const int k = (kb + stages - 1) * block_k + step + b_row;
        const int n = bn * block_n + b_col;
        cp_async<16>(&b_tile[((kb + stages - 1) % stages * block_k + step + b_row) * block_n + b_col], &b[k * N + n]);
      }
    }
    cp_async_commit();
    #pragma unroll 32
    for (int kk = 0; kk < block_k; ++kk) {
      float left[thread_m];
      #pragma unroll
      for (int i = 0; i < thread_m; i += 4)
        load_vector<4>(&left[i], &a_tile[(slot_ * block_k + kk) * (block_m + pad) + i * threads_y + ty * 4]);
      float right[thread_n];
      #pragma unroll
      for (int i = 0; i < thread_n; i += 4)
        load_vector<4>(&right[i], &b_tile[(slot_ * block_k + kk) * block_n + i * threads_x + tx * 4]);
      #pragma unroll
      for (int i = 0; i < thread_m; ++i) {
        #pragma unroll
        for (int j = 0; j < thread_n; ++j)
          acc[i][j] += left[i] * right[j];
      }
    }
  }
  #pragma unroll
  for (int i = 0; i < thread_m; ++i) {
    #pragma unroll
    for (int j = 0; j < thread_n; j += 4) {
      const int row = (i / 4) * threads_y * 4 + ty * 4 + i % 4;
      const int m = bm * block_m + row;
      const int n = bn * block_n + j * threads_x + tx * 4;
      float value[4];
      float bias_vector[4];
      load_vector<4>(bias_vector, &bias[n]);
      #pragma unroll
      for (int v = 0; v < 4; ++v)
        value[v] = relu(acc[i][j + v] + bias_vector[v]);
      store_vector<4>(&y[m * N + n], value);
    }
  }
}
