// matmul_bias_relu for sm_90a: warp_specialized(threads_x=8, threads_y=16, thread_m=8, thread_n=8, block_k=32, band=16, stages=4, slice_k=2)

constexpr int M = 1024;
constexpr int N = 1024;
constexpr int K = 1024;
constexpr int threads_x = 8;
constexpr int threads_y = 16;
constexpr int thread_m = 8;
constexpr int thread_n = 8;
constexpr int block_k = 32;
constexpr int band = 16;
constexpr int stages = 4;
constexpr int slice_k = 2;
constexpr int block_m = threads_y * thread_m;
constexpr int block_n = threads_x * thread_n;
constexpr int THREADS = slice_k * threads_x * threads_y + 32;

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float relu(float x) { return max_nan(x, 0.0f); }

using mbarrier = unsigned long long;

__device__ __forceinline__ void barrier_init(mbarrier *barrier, int arrivals) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

// Lets the copy engine, and other blocks of a cluster, see barriers that were just made.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(mbarrier *barrier) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(at) : "memory");
}

// One arrival; the phase also waits for so many bytes of bulk copies.
__device__ __forceinline__ void barrier_expect(mbarrier *barrier, int bytes) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}"
               ::"r"(at), "r"(bytes) : "memory");
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

// Where element `index` of a tile in shared memory lies when chunks of 16 bytes are permuted within BYTES.
template <int BYTES, int SIZE>
__device__ __forceinline__ constexpr int swizzled(int index) {
  const int chunk = index * SIZE / 16;
  return index ^ (((chunk / 8) & (BYTES / 16 - 1)) * (16 / SIZE));
}

__device__ __forceinline__ void named_barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

struct __align__(64) tensor_map {
  unsigned long long words[16];
};

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(map),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))), "r"(c0) : "memory");
}

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(map),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))), "r"(c0), "r"(c1) : "memory");
}

__device__ __forceinline__ void tma_load(void *shared, const tensor_map *map, mbarrier *barrier, int c0, int c1,
                                         int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%3, %4, %5}], [%2];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(map),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))), "r"(c0), "r"(c1), "r"(c2) : "memory");
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

template <typename A, typename B>
__device__ constexpr auto least(A a, B b) {
  return a < b ? a : b;
}

// --- kernel ---
extern "C" __global__ void __launch_bounds__(THREADS) matmul(const float *__restrict__ bias, float *__restrict__ y,
    const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  float *a_tile = reinterpret_cast<float *>(shared_memory);
  float *b_tile = reinterpret_cast<float *>(shared_memory + 65536);
  float *sums1 = reinterpret_cast<float *>(shared_memory + 98304);
  mbarrier *full = reinterpret_cast<mbarrier *>(shared_memory + 131072);
  mbarrier *free = reinterpret_cast<mbarrier *>(shared_memory + 131104);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < stages; ++slot) {
      barrier_init(&full[slot], 1);
      barrier_init(&free[slot], threads_x * threads_y / 32);
    }
    barrier_init_fence();
  }
  __syncthreads();
  const int block = blockIdx.x;
  const int first_row = block / (band * (N / block_n)) * band;
  const int rows = least(band, M / block_m - first_row);
  const int bm = first_row + block % (band * (N / block_n)) % rows;
  const int bn = block % (band * (N / block_n)) / rows;
  if (threadIdx.x < 256) {
    const int group = threadIdx.x / 128;
    unsigned full_phase = 0;
    const int thread = threadIdx.x % 128;
    const int ty = thread / threads_x;
    const int tx = thread % threads_x;
    float acc[thread_m][thread_n] = {};
    for (int kb = group; kb < K / block_k; kb += slice_k) {
      const int slot = kb % stages;
      barrier_wait(&full[slot], full_phase >> slot & 1);
      full_phase ^= 1u << slot;
      #pragma unroll 4
      for (int kk = 0; kk < block_k; kk += 4) {
        float left[thread_m][4];
        #pragma unroll
        for (int i = 0; i < thread_m; ++i) {
          load_vector<4>(left[i], &a_tile[slot * block_m * block_k + i * threads_y * block_k + swizzled<128,
              4>(ty * block_k + kk)]);
        }
        #pragma unroll
        for (int step = 0; step < 4; ++step) {
          float right[thread_n];
          #pragma unroll
          for (int i = 0; i < thread_n; i += 4)
            load_vector<4>(&right[i], &b_tile[(slot * block_k + kk + step) * block_n + i * threads_x + tx * 4]);
          #pragma unroll
          for (int i = 0; i < thread_m; ++i) {
            #pragma unroll
            for (int j = 0; j < thread_n; ++j)
              acc[i][j] += left[i][step] * right[j];
          }
        }
      }
      __syncwarp();
      if (thread % 32 == 0)
        barrier_arrive(&free[slot]);
    }
    if (group == 0) {
      named_barrier(1, slice_k * threads_x * threads_y);
      #pragma unroll
      for (int i = 0; i < thread_m; ++i) {
        #pragma unroll
        for (int j = 0; j < thread_n; j += 4) {
          float sums1_vector[4];
          load_vector<4>(sums1_vector, &sums1[(i * threads_y + ty) * block_n + j * threads_x + tx * 4]);
          #pragma unroll
          for (int v = 0; v < 4; ++v)
            acc[i][j + v] = acc[i][j + v] + sums1_vector[v];
        }
      }
      #pragma unroll
      for (int i = 0; i < thread_m; ++i) {
        #pragma unroll
        for (int j = 0; j < thread_n; j += 4) {
          const int m = bm * block_m + i * threads_y + ty;
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
      #pragma unroll
      for (int i = 0; i < thread_m; ++i) {
        #pragma unroll
        for (int j = 0; j < thread_n; j += 4)
          store_vector<4>(&sums1[(i * threads_y + ty) * block_n + j * threads_x + tx * 4], &acc[i][j]);
      }
      named_barrier(1, slice_k * threads_x * threads_y);
    }
  } else {
    if (threadIdx.x == 256) {
      unsigned free_phase = ~0u;
      for (int kb = 0; kb < K / block_k; ++kb) {
        const int slot = kb % stages;
        barrier_wait(&free[slot], free_phase >> slot & 1);
        free_phase ^= 1u << slot;
        barrier_expect(&full[slot], 4 * block_k * (block_m + block_n));
        tma_load(&a_tile[slot * block_m * block_k], &a_map, &full[slot], kb * block_k, bm * block_m);
        tma_load(&b_tile[slot * block_k * block_n], &b_map, &full[slot], bn * block_n, kb * block_k);
      }
    }
  }
}
