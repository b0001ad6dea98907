// y = relu(a b + bias) through dynamic shared memory, in clusters or through a tensor map: -D names which.

#ifdef TENSOR_MAP
struct __align__(64) tensor_map { unsigned long long words[16]; };
#endif

extern "C" __global__ void kernel(
#ifdef TENSOR_MAP
    const __grid_constant__ tensor_map a_map,
#else
    const float *a,
#endif
    const float *b, const float *bias, float *y, int M, int N, int K) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
  float acc = 0.0f;
#ifdef TENSOR_MAP
  __shared__ __align__(128) float row[32];
  __shared__ unsigned long long full;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  for (int k0 = 0, phase = 0; k0 < K; k0 += 32, phase ^= 1) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar) : "memory");
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
              (unsigned)__cvta_generic_to_shared(row)),
          "l"(&a_map), "r"(k0), "r"(m), "r"(bar)
          : "memory");
    }
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(bar),
        "r"(phase)
        : "memory");
    for (int k = k0; k < k0 + 32 && k < K; ++k)
      if (n < N) acc = fmaf(row[k - k0], b[k * N + n], acc);
    __syncthreads();
  }
#else
  extern __shared__ float row[];
  for (int k = threadIdx.x; k < K; k += blockDim.x) row[k] = a[m * K + k];
  __syncthreads();
#ifdef CLUSTER
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#endif
  for (int k = 0; k < K; ++k)
    if (n < N) acc = fmaf(row[k], b[k * N + n], acc);
#endif
  if (n < N) {
    acc += bias[n];
    y[m * N + n] = acc < 0.0f ? 0.0f : acc;
  }
}
