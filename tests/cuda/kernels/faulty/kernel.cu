// y = relu(a b + bias), and what FAULT makes of it: 0 nothing, 1 half of the rows, 2 no row, 3 NaN everywhere,
// 4 a write far beyond the output, 5 no end, 6 right, with two sums.

extern "C" __global__ void kernel(const float *a, const float *b, const float *bias, float *y SIZES) {
  const int n = blockIdx.x * 32 + threadIdx.x, m = blockIdx.y * 8 + threadIdx.y;
  if (m >= M || n >= N) return;
  if (FAULT == 1 && m >= M / 2) return;
  if (FAULT == 2) return;
  if (FAULT == 4 && m == 0 && n == 0) y[1ll << 36] = 1.0f;
  if (FAULT == 5) {
    volatile float *flag = y;
    while (flag[0] != 12345.678f) {}
  }
  float even = 0.0f, odd = 0.0f;
  if (FAULT == 6) {
    for (int k = 0; k + 1 < K; k += 2) {
      even = fmaf(a[m * K + k], b[k * N + n], even);
      odd = fmaf(a[m * K + k + 1], b[(k + 1) * N + n], odd);
    }
    if (K & 1) even = fmaf(a[m * K + K - 1], b[(K - 1) * N + n], even);
  } else {
    for (int k = 0; k < K; ++k) even = fmaf(a[m * K + k], b[k * N + n], even);
  }
  const float sum = even + odd + bias[n];
  y[m * N + n] = FAULT == 3 ? __int_as_float(0x7fffffff) : sum < 0.0f ? 0.0f : sum;
}
