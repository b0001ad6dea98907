// Each thread computes one element, its neighbours in x the rows below.
extern "C" __global__ void __launch_bounds__(64) naive(
    const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ y,
    int M, int N, int K) {
  const int m = blockIdx.y * 8 + threadIdx.x % 8;
  const int n = blockIdx.x * 8 + threadIdx.x / 8;
  if (m < M && n < N) {
    float acc = 0.0f;
    for (int k = 0; k < K; k++) acc = fmaf(a[m * K + k], b[k * N + n], acc);
    y[m * N + n] = fmaxf(acc + bias[n], 0.0f);
  }
}
