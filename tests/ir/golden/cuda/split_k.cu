// matmul_bias_relu for sm_90a: split_k(Z=8)

constexpr int M = 512;
constexpr int N = 512;
constexpr int K = 4096;
constexpr int BM = 64;
constexpr int BN = 64;
constexpr int BK = 16;
constexpr int Z = 8;

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

// --- kernel ---
extern "C" __global__ void __launch_bounds__(256) partial(const float *__restrict__ a, const float *__restrict__ b,
    float *__restrict__ part) {
  __shared__ __align__(16) float a_tile[BM * (BK + 4)];
  __shared__ __align__(16) float b_tile[BK * BN];
  const int z = blockIdx.x;
  const int m = blockIdx.y;
  const int n = blockIdx.z;
  const int thread = threadIdx.x;
  const int ty = thread / 16;
  const int tx = thread % 16;
  const int a_row = thread / (BK / 4);
  const int a_col = thread % (BK / 4) * 4;
  const int b_row = thread / (BN / 4);
  const int b_col = thread % (BN / 4) * 4;
  float acc[4][4] = {};
  for (int k = z * (K / Z / BK); k < (z + 1) * (K / Z / BK); ++k) {
    copy_vector<4>(&a_tile[a_row * (BK + 4) + a_col], &a[(m * BM + a_row) * K + k * BK + a_col]);
    copy_vector<4>(&b_tile[b_row * BN + b_col], &b[(k * BK + b_row) * N + n * BN + b_col]);
    __syncthreads();
    #pragma unroll 2
    for (int kk = 0; kk < BK; kk += 4) {
      float left[4][4];
      #pragma unroll
      for (int ii = 0; ii < 4; ++ii)
        load_vector<4>(left[ii], &a_tile[ty * 4 * (BK + 4) + kk] + ii * (BK + 4));
      #pragma unroll
      for (int step = 0; step < 4; ++step) {
        float right[4];
        load_vector<4>(&right[0], &b_tile[kk * BN + tx * 4] + step * BN);
        #pragma unroll
        for (int ii = 0; ii < 4; ++ii) {
          #pragma unroll
          for (int jj = 0; jj < 4; ++jj)
            acc[ii][jj] += left[ii][step] * right[jj];
        }
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int ii = 0; ii < 4; ++ii)
    store_vector<4>(&part[(z * M + m * BM + ty * 4 + ii) * N + n * BN + tx * 4], &acc[ii][0]);
}

extern "C" __global__ void __launch_bounds__(256) combine(const float *__restrict__ bias, float *__restrict__ y,
    const float *__restrict__ part) {
  const int m = blockIdx.x;
  const int n = blockIdx.y;
  const int thread = threadIdx.x;
  const int ty = thread / 16;
  const int tx = thread % 16;
  float total[4][4] = {};
  for (int z = 0; z < Z; ++z) {
    #pragma unroll
    for (int ii = 0; ii < 4; ++ii) {
      #pragma unroll
      for (int jj = 0; jj < 4; ++jj) {
        const int i = ty * 4 + ii;
        const int j = tx * 4 + jj;
        total[ii][jj] += part[(z * M + m * BM + i) * N + n * BN + j];
      }
    }
  }
  #pragma unroll
  for (int ii = 0; ii < 4; ++ii) {
    #pragma unroll
    for (int jj = 0; jj < 4; ++jj) {
      const int j = n * BN + tx * 4 + jj;
      y[(m * BM + ty * 4 + ii) * N + j] = relu(total[ii][jj] + bias[j]);
    }
  }
}
