// Reductions over threads: all of them get the result.

struct Add {
  template <typename T>
  __device__ __forceinline__ static T of(T a, T b) { return a + b; }
};

struct Multiply {
  template <typename T>
  __device__ __forceinline__ static T of(T a, T b) { return a * b; }
};

struct Maximum {
  template <typename T>
  __device__ __forceinline__ static T of(T a, T b) { return max_nan(a, b); }
};

struct Minimum {
  template <typename T>
  __device__ __forceinline__ static T of(T a, T b) { return min_nan(a, b); }
};

// Over THREADS lanes of a warp that stand STRIDE apart.
template <typename Op, int THREADS, int STRIDE, typename T>
__device__ __forceinline__ T warp_reduce(T x) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) x = Op::of(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}

// Over the threads of a block of WARPS warps; `scratch` has an element a warp and may be in use until all are here.
template <typename Op, int WARPS, typename T>
__device__ __forceinline__ T block_reduce(T x, T *scratch) {
  x = warp_reduce<Op, 32, 1>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int warp = 1; warp < WARPS; ++warp) x = Op::of(x, scratch[warp]);
  return x;
}

// Over what each of BLOCKS blocks of a cluster has; all of their threads call it.
template <typename Op, int BLOCKS>
__device__ __forceinline__ float cluster_reduce(float x, float *scratch) {
  __syncthreads();
  if (threadIdx.x == 0) scratch[0] = x;
  cluster_sync();
  x = cluster_read(scratch, 0);
  for (int block = 1; block < BLOCKS; ++block) x = Op::of(x, cluster_read(scratch, block));
  cluster_sync();
  return x;
}
