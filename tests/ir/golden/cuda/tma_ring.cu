// matmul_bias_relu for sm_90a

constexpr int N = 1024;
constexpr int K = 1024;
constexpr int BM = 128;
constexpr int BN = 128;
constexpr int BK = 16;
constexpr int S = 3;

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

template <int REGISTERS>
__device__ __forceinline__ void set_max_registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void set_max_registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
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

// --- kernel ---
extern "C" __global__ void __launch_bounds__(384, 1) main_(const float *__restrict__ bias, float *__restrict__ y,
    const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map) {
  extern __shared__ __align__(512) unsigned char shared_memory[];
  float *a_tile = reinterpret_cast<float *>(shared_memory);
  float *b_tile = reinterpret_cast<float *>(shared_memory + 24576);
  mbarrier *full_a = reinterpret_cast<mbarrier *>(shared_memory + 49152);
  mbarrier *full_b = reinterpret_cast<mbarrier *>(shared_memory + 49176);
  mbarrier *free = reinterpret_cast<mbarrier *>(shared_memory + 49200);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < S; ++slot) {
      barrier_init(&full_a[slot], 1);
      barrier_init(&full_b[slot], 1);
      barrier_init(&free[slot], 8);
    }
    barrier_init_fence();
  }
  __syncthreads();
  const int m = blockIdx.x;
  const int n = blockIdx.y;
  if (threadIdx.x < 128) {
    set_max_registers_down<40>();
    if (threadIdx.x == 0) {
      unsigned free_phase = ~0u;
      for (int k = 0; k < K / BK; ++k) {
        const int slot = k % S;
        barrier_wait(&free[slot], free_phase >> slot & 1);
        free_phase ^= 1u << slot;
        barrier_expect(&full_a[slot], 4 * BM * BK);
        tma_load(&a_tile[slot * BM * BK], &a_map, &full_a[slot], k * BK, m * BM);
        barrier_expect(&full_b[slot], 4 * BK * BN);
        tma_load(&b_tile[slot * BK * BN], &b_map, &full_b[slot], n * BN, k * BK);
      }
    }
  } else {
    set_max_registers_up<232>();
    unsigned full_a_phase = 0;
    unsigned full_b_phase = 0;
    const int thread = threadIdx.x - 128;
    const int ty = thread / 16;
    const int tx = thread % 16;
    float acc[8][8] = {};
    for (int k = 0; k < K / BK; ++k) {
      const int slot = k % S;
      barrier_wait(&full_a[slot], full_a_phase >> slot & 1);
      full_a_phase ^= 1u << slot;
      barrier_wait(&full_b[slot], full_b_phase >> slot & 1);
      full_b_phase ^= 1u << slot;
      #pragma unroll 2
      for (int kk = 0; kk < BK; kk += 4) {
        float left[8][4];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const int at = (i / 4) * 64 + ty * 4 + i % 4;
          load_vector<4>(left[i], &a_tile[slot * BM * BK + swizzled<64, 4>(at * BK + kk)]);
        }
        #pragma unroll
        for (int step = 0; step < 4; ++step) {
          float right[8];
          #pragma unroll
          for (int i = 0; i < 8; i += 4)
            load_vector<4>(&right[i], &b_tile[(slot * BK + kk) * BN + tx * 4] + (step * BN + i * 16));
          #pragma unroll
          for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int jj = 0; jj < 8; ++jj)
              acc[i][jj] += left[i][step] * right[jj];
          }
        }
      }
      __syncwarp();
      if (thread % 32 == 0)
        barrier_arrive(&free[slot]);
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      #pragma unroll
      for (int jj = 0; jj < 8; jj += 4) {
        const int row = (i / 4) * 64 + ty * 4 + i % 4;
        const int j = n * BN + jj * 16 + tx * 4;
        float value[4];
        #pragma unroll
        for (int v = 0; v < 4; ++v)
          value[v] = relu(acc[i][jj + v] + bias[j + v]);
        store_vector<4>(&y[(m * BM + row) * N + j], value);
      }
    }
  }
}
