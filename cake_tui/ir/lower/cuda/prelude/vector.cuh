// Vectors of N elements between memory and registers: one access of N * sizeof(T) bytes, which must be aligned.

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

// The first `count` elements, which may be none or all N; the others take `otherwise`.
template <int N, typename T>
__device__ __forceinline__ void load_part(T *to, const T *from, long long count, T otherwise) {
  if (count >= N) return load_vector<N>(to, from);
#pragma unroll
  for (int n = 0; n < N; ++n) to[n] = n < count ? from[n] : otherwise;
}

template <int N, typename T>
__device__ __forceinline__ void store_part(T *to, const T *from, long long count) {
  if (count >= N) return store_vector<N>(to, from);
#pragma unroll
  for (int n = 0; n < N; ++n)
    if (n < count) to[n] = from[n];
}
