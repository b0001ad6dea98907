// matmul_bias_relu for sm_90a: warp_specialized(threads_x=32, threads_y=8, thread_m=16, thread_n=8, block_k=16, vector=4, pad=2, stages=4, loaders=4)

constexpr int N = 4096;
constexpr int K = 4096;
constexpr int threads_x = 32;
constexpr int threads_y = 8;
constexpr int thread_m = 16;
constexpr int thread_n = 8;
constexpr int block_k = 16;
constexpr int vector = 4;
constexpr int pad = 2;
constexpr int stages = 4;
constexpr int loaders = 4;
constexpr int block_m = threads_y * thread_m;
constexpr int block_n = threads_x * thread_n;
constexpr int THREADS = threads_x * threads_y + 32 * loaders;
constexpr int LOADER_THREADS = 128;

template <int BYTES>
__device__ __forceinline__ void cp_async(void *shared, const void *global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(BYTES) : "memory");
}

using mbarrier = unsigned long long;

// The barrier's phase cannot end before this thread's copies so far have landed; counts as no arrival.
__device__ __forceinline__ void cp_async_arrive(mbarrier *barrier) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at) : "memory");
}

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float relu(float x) { return max_nan(x, 0.0f); }

__device__ __forceinline__ void barrier_init(mbarrier *barrier, int arrivals) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(mbarrier *barrier) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(at) : "memory");
}

// Until the phase of that parity is over; the phase before the first one has parity 1 and is.
__device__ __forceinline__ void barrier_wait(mbarrier *barrier, unsigned parity) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned over = 0;
  while (!over) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over) : "r"(at), "r"(parity) : "memory");
#else
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over) : "r"(at), "r"(parity) : "memory");
#endif
  }
}

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

// --- kernel ---
extern "C" __global__ void __launch_bounds__(THREADS) matmul(const float *__restrict__ a, const float *__restrict__ b,
    const float *__restrict__ bias, float *__restrict__ y) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  float *a_tile = reinterpret_cast<float *>(shared_memory);
  float *b_tile = reinterpret_cast<float *>(shared_memory + 33280);
  mbarrier *full = reinterpret_cast<mbarrier *>(shared_memory + 98816);
  mbarrier *free = reinterpret_cast<mbarrier *>(shared_memory + 98848);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < stages; ++slot) {
      barrier_init(&full[slot], 32 * loaders);
      barrier_init(&free[slot], threads_x * threads_y / 32);
    }
  }
  __syncthreads();
  const int bn = blockIdx.x;
  const int bm = blockIdx.y;
  if (threadIdx.x < 256) {
    unsigned full_phase = 0;
    const int thread = threadIdx.x;
    // A warp covers 4 x 8 threads, neighbours in pairs: halves of it share their reads.
    const int ty = thread / 32 / 4 * 4 + thread % 32 / 16 * 2 + thread % 2;
    const int tx = thread / 32 % 4 * 8 + thread / 2 % 8;
    float acc[thread_m][thread_n] = {};
    for (int kb = 0; kb < K / block_k; ++kb) {
      const int slot = kb % stages;
      barrier_wait(&full[slot], full_phase >> slot & 1);
      full_phase ^= 1u << slot;
      #pragma unroll 32
      for (int kk = 0; kk < block_k; ++kk) {
        float left[thread_m];
        #pragma unroll
        for (int i = 0; i < thread_m; i += 2) {
          const int at = (i / 4) * threads_y * 4 + ty * 4 + i % 4;
          load_vector<2>(&left[i], &a_tile[(slot * block_k + kk) * (block_m + pad) + at]);
        }
        float right[thread_n];
        #pragma unroll
        for (int i = 0; i < thread_n; i += 4)
          load_vector<4>(&right[i], &b_tile[(slot * block_k + kk) * block_n + i * threads_x + tx * 4]);
        #pragma unroll
        for (int i = 0; i < thread_m; ++i) {
          #pragma unroll
          for (int j = 0; j < thread_n; ++j)
            acc[i][j] += left[i] * right[j];
        }
      }
      __syncwarp();
      if (thread % 32 == 0)
        barrier_arrive(&free[slot]);
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
  } else {
    unsigned free_phase = ~0u;
    const int thread = threadIdx.x - 256;
    const int a_row = thread / block_k;
    const int a_col = thread % block_k;
    const int b_row = thread / (block_n / vector);
    const int b_col = thread % (block_n / vector) * vector;
    for (int kb = 0; kb < K / block_k; ++kb) {
      const int slot = kb % stages;
      barrier_wait(&free[slot], free_phase >> slot & 1);
      free_phase ^= 1u << slot;
      #pragma unroll
      for (int step = 0; step < block_m; step += LOADER_THREADS / block_k) {
        const int m = bm * block_m + step + a_row;
        const int k = kb * block_k + a_col;
        cp_async<4>(&a_tile[(slot * block_k + a_col) * (block_m + pad) + step + a_row], &a[m * K + k]);
      }
      #pragma unroll
      for (int step = 0; step < block_k; step += LOADER_THREADS / (block_n / vector)) {
        const int k = kb * block_k + step + b_row;
        const int n = bn * block_n + b_col;
        cp_async<16>(&b_tile[(slot * block_k + step + b_row) * block_n + b_col], &b[k * N + n]);
      }
      cp_async_arrive(&full[slot]);
      barrier_arrive(&full[slot]);
    }
  }
}
