// kmeans_assign for sm_90a

constexpr int N = 1024;
constexpr int D = 64;
constexpr int K = 16;
constexpr int P = 64;
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

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

template <typename T>
__device__ __forceinline__ T square(T x) {
  return x * x;
}

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

struct Least {
  template <typename T>
  __device__ __forceinline__ static bool better(T a, T b) { return a < b; }
};

template <typename Order, typename T>
__device__ __forceinline__ void take(T &value, int &index, T other, int other_index) {
  if (Order::better(other, value) || (other == value && other_index < index)) {
    value = other;
    index = other_index;
  }
}

// --- kernel ---
extern "C" __global__ void __launch_bounds__(256) assign(const float *__restrict__ x, const float *__restrict__ c,
    int *__restrict__ label) {
  __shared__ __align__(16) float points[2 * P * (D + 4)];
  __shared__ __align__(16) float centres[K * (D + 4)];
  __shared__ mbarrier full[2];
  __shared__ mbarrier free[2];
  __shared__ mbarrier ready[1];
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < 2; ++slot) {
      barrier_init(&full[slot], 128);
      barrier_init(&free[slot], 4);
    }
    barrier_init(&ready[0], 128);
  }
  __syncthreads();
  const int b = blockIdx.x;
  if (threadIdx.x < 128) {
    unsigned free_phase = ~0u;
    const int thread = threadIdx.x;
    const int centres_row = thread / (D / 4);
    const int centres_col = thread % (D / 4) * 4;
    #pragma unroll
    for (int step = 0; step < K; step += LOADER_THREADS / (D / 4)) {
      cp_async<16>(&centres[(step + centres_row) * (D + 4) + centres_col], &c[(step + centres_row) * D
          + centres_col]);
    }
    cp_async_arrive(&ready[0]);
    barrier_arrive(&ready[0]);
    for (int t = 0; t < N / 4 / P; ++t) {
      const int slot = t % 2;
      barrier_wait(&free[slot], free_phase >> slot & 1);
      free_phase ^= 1u << slot;
      #pragma unroll
      for (int step = 0; step < P; step += LOADER_THREADS / (D / 4)) {
        cp_async<16>(&points[(slot * P + step + centres_row) * (D + 4) + centres_col], &x[(b * N / 4 + t * P + step
            + centres_row) * D + centres_col]);
      }
      cp_async_arrive(&full[slot]);
      barrier_arrive(&full[slot]);
    }
  } else {
    unsigned ready_phase = 0;
    unsigned full_phase = 0;
    const int thread = threadIdx.x - 128;
    const int tx = thread % P;
    barrier_wait(&ready[0], ready_phase);
    ready_phase ^= 1;
    for (int t = 0; t < N / 4 / P; ++t) {
      const int slot = t % 2;
      float best = infinity();
      int nearest = 0;
      barrier_wait(&full[slot], full_phase >> slot & 1);
      full_phase ^= 1u << slot;
      for (int k = 0; k < K; ++k) {
        float d = 0.0f;
        #pragma unroll 8
        for (int e = 0; e < D; ++e)
          d += square(points[(slot * P + tx) * (D + 4) + e] - centres[k * (D + 4) + e]);
        take<Least>(best, nearest, d, k);
      }
      __syncwarp();
      if (thread % 32 == 0)
        barrier_arrive(&free[slot]);
      if (thread < 64)
        label[b * N / 4 + t * P + tx] = nearest;
    }
  }
}
