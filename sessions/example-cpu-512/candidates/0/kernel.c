// matmul_bias_relu for x86-64-v4: naive()

enum {
  M = 512,
  N = 512,
  K = 512,
};

static inline float relu_f32(float x) { return x < 0 ? 0 : x; }

void matmul(const int task[3], const float *restrict a, const float *restrict b, const float *restrict bias,
    float *restrict y) {
  (void)task;
  for (long m = 0; m < M; m++) {
    for (long n = 0; n < N; n++) {
      float acc = 0.0f;
      for (long k = 0; k < K; k++)
        acc += a[m * K + k] * b[k * N + n];
      y[m * N + n] = relu_f32(acc + bias[n]);
    }
  }
}
