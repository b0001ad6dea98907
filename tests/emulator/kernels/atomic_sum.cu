// Blocks add into y by atomics and count themselves; the last, which the counter orders behind the others, doubles y.
extern "C" __global__ void __launch_bounds__(64) zero(float *__restrict__ y, int *__restrict__ done, int N) {
  const int n = blockIdx.x * 64 + threadIdx.x;
  if (n < N) y[n] = 0.0f;
  if (n == 0) done[0] = 0;
}

extern "C" __global__ void __launch_bounds__(64) add(
    const float *__restrict__ x, float *__restrict__ y, int *__restrict__ done, int M, int N) {
  __shared__ bool last;
  for (int n = threadIdx.x; n < N; n += 64) atomicAdd(&y[n], x[blockIdx.x * N + n]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&done[0], 1) == M - 1;
  __syncthreads();
  if (last)
    for (int n = threadIdx.x; n < N; n += 64) y[n] = y[n] * 2.0f;
}
