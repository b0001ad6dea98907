// matmul_bias_relu for sm_90a: blocked(TX=16, TY=16, RM=4, RN=8, BK=16)

constexpr int N = 1000;
constexpr int K = 1024;
constexpr int TX = 16;
constexpr int TY = 16;
constexpr int RM = 4;
constexpr int RN = 8;
constexpr int BK = 16;
constexpr int BM = TY * RM;
constexpr int BN = TX * RN;
constexpr int THREADS = TX * TY;

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float relu(float x) { return max_nan(x, 0.0f); }

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

template <int N, typename T>
__device__ __forceinline__ void copy_vector(T *to, const T *from) {
  *reinterpret_cast<Vector<N, T> *>(to) = *reinterpret_cast<const Vector<N, T> *>(from);
}

// Zeros where it is not `inside`; the source is then not read.
template <int N, typename T>
__device__ __forceinline__ void copy_vector_or_zero(T *to, const T *from, bool inside) {
  Vector<N, T> vector = {};
  if (inside) vector = *reinterpret_cast<const Vector<N, T> *>(from);
  *reinterpret_cast<Vector<N, T> *>(to) = vector;
}

// --- kernel ---
extern "C" __global__ void __launch_bounds__(THREADS) main_(const float *__restrict__ a, const float *__restrict__ b,
    const float *__restrict__ bias, float *__restrict__ y) {
  __shared__ __align__(16) float a_tile[BM * (BK + 4)];
  __shared__ __align__(16) float b_tile[BK * BN];
  const int m = blockIdx.x;
  const int n = blockIdx.y;
  const int thread = threadIdx.x;
  const int ty = thread / TX;
  const int tx = thread % TX;
  const int a_row = thread / (BK / 4);
  const int a_col = thread % (BK / 4) * 4;
  const int b_row = thread / (BN / 4);
  const int b_col = thread % (BN / 4) * 4;
  float acc[RM][RN] = {};
  for (int k = 0; k < K / BK; ++k) {
    copy_vector<4>(&a_tile[a_row * (BK + 4) + a_col], &a[(m * BM + a_row) * K + k * BK + a_col]);
    #pragma unroll
    for (int step = 0; step < BK; step += THREADS / (BN / 4)) {
      const int j = n * BN + b_col;
      copy_vector_or_zero<4>(&b_tile[(step + b_row) * BN + b_col], &b[(k * BK + step + b_row) * N + j], j < N);
    }
    __syncthreads();
    #pragma unroll 16
    for (int kk = 0; kk < BK; ++kk) {
      float x[RM];
      float z[RN];
      #pragma unroll
      for (int i = 0; i < RM; ++i)
        x[i] = a_tile[(ty * RM + i) * (BK + 4) + kk];
      #pragma unroll
      for (int i = 0; i < RN; i += 4)
        load_vector<4>(&z[i], &b_tile[kk * BN + i * TX + tx * 4]);
      #pragma unroll
      for (int i = 0; i < RM; ++i) {
        #pragma unroll
        for (int jj = 0; jj < RN; ++jj)
          acc[i][jj] += x[i] * z[jj];
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int i = 0; i < RM; ++i) {
    #pragma unroll
    for (int jj = 0; jj < RN; jj += 4) {
      const int j = n * BN + jj * TX + tx * 4;
      if (j < N) {
        float value[4];
        float bias_vector[4];
        load_vector<4>(bias_vector, &bias[j]);
        #pragma unroll
        for (int v = 0; v < 4; ++v)
          value[v] = relu(acc[i][jj + v] + bias_vector[v]);
        store_vector<4>(&y[(m * BM + ty * RM + i) * N + j], value);
      }
    }
  }
}
