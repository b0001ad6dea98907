// Blocks along z sum parts of k into a workspace; a second launch adds the parts up.
constexpr int PARTS = 3;

extern "C" __global__ void __launch_bounds__(64) partial(
    const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ parts, int M, int N, int K) {
  const int m = blockIdx.y * 8 + threadIdx.x / 8, n = blockIdx.x * 8 + threadIdx.x % 8;
  const int length = (K + PARTS - 1) / PARTS, first = blockIdx.z * length, last = min(first + length, K);
  if (m >= M || n >= N) return;
  float acc = 0.0f;
  for (int k = first; k < last; k++) acc = fmaf(a[m * K + k], b[k * N + n], acc);
  parts[(blockIdx.z * M + m) * N + n] = acc;
}

extern "C" __global__ void __launch_bounds__(64) combine(
    const float *__restrict__ parts, const float *__restrict__ bias, float *__restrict__ y, int M, int N) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  if (at >= M * N) return;
  float sum = 0.0f;
  for (int part = 0; part < PARTS; part++) sum += parts[part * M * N + at];
  y[at] = fmaxf(sum + bias[at % N], 0.0f);
}
