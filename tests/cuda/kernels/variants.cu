// y = relu(a b + bias), one element a thread, and the same with one fault each: -D names it.

#ifdef LEAKS
extern "C" __device__ void *malloc(size_t);
#endif

__device__ unsigned int calls;

extern "C" __global__ void kernel(const float *a, const float *b, const float *bias, float *y,
#ifdef WORKSPACE
                                  float *space,
#endif
                                  int M, int N, int K) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y * blockDim.y + threadIdx.y;
#ifdef HANGS
  volatile unsigned int *flag = &calls;
  while (*flag == 0) {}
#endif
#ifdef RIGHT_FOR_A_WHILE
  // The check makes fewer than 500 launches of this kernel; the timed ones come behind them.
  __shared__ unsigned int call;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    if (blockIdx.x == 0 && blockIdx.y == 0) atomicAdd(&calls, 1);
    call = *(volatile unsigned int *)&calls;
  }
  __syncthreads();
  const bool lazy = call > LATER;
#else
  const bool lazy = false;
#endif
  if (m >= M || n >= N) return;
  float acc = 0.0f;
#ifdef HALF_OUTPUT
  if (m >= M / 2) return;
#endif
#ifdef NOTHING
  return;
#endif
#ifdef ACCUMULATES
  acc = y[m * N + n];
#endif
#ifdef DIRTY_WORKSPACE
  acc = space[m * N + n] == 0.0f ? 0.0f : 1.0f;
#endif
#ifdef SKIPS_WHEN_WRITTEN
  if (__float_as_uint(y[m * N + n]) != 0x7FCDEAD1u && __float_as_uint(y[m * N + n]) != 0xC0E8F5C3u) return;
#endif
  int last = K;
#ifdef LAST_TERM_MISSING
  last = K - 1;
#endif
  for (int k = 0; k < last; ++k) {
    float x = a[m * K + k], z = b[k * N + n];
#ifdef TF32_INPUTS
    x = __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
    z = __uint_as_float((__float_as_uint(z) + 0x1000u) & 0xffffe000u);
#endif
    acc = fmaf(x, z, acc);
  }
  acc += bias[n];
#ifdef ALL_NAN
  acc = __int_as_float(0x7fffffff);
  y[m * N + n] = acc;
  return;
#endif
#ifdef RACES
  if (threadIdx.x == 0) acc += (float)(clock64() & 1);
#endif
#ifdef CHANGES_AN_INPUT
  if (m == 0 && n == 0) const_cast<float *>(a)[0] += 1.0f;
#endif
#ifdef WRITES_BEHIND
  if (m == M - 1 && n == N - 1) y[M * N + 7] = acc;
#endif
#ifdef WRITES_BEFORE
  if (m == 0 && n == 0) y[-3] = acc;
#endif
#ifdef WRITES_FAR
  if (m == 0 && n == 0)
    for (long long far = 1; far < 64; ++far) y[far << 34] = acc;
#endif
#ifdef LEAKS
  if (m == 0 && n == 0) *(float *)malloc(8192) = acc;
#endif
#ifdef WANTS_ALIGNMENT
  if (((unsigned long long)a & 15) != 0) acc += 1.0f;
#endif
  if (lazy) {
#ifdef HANGS_LATER
    volatile float *output = y;
    while (output[m * N + n] != 12345.678f) {}
#endif
#ifdef STOPS_WRITING
    return;
#else
    acc += 0.5f;
#endif
  }
  y[m * N + n] = acc < 0.0f ? 0.0f : acc;
}
