// Reductions over threads: all of them get the result.

// Over THREADS lanes of a warp that stand STRIDE apart.
template <int THREADS, int STRIDE, typename T>
__device__ __forceinline__ T warp_add(T x) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) x += __shfl_xor_sync(~0u, x, lane);
  return x;
}

template <int THREADS, int STRIDE, typename T>
__device__ __forceinline__ T warp_mul(T x) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) x *= __shfl_xor_sync(~0u, x, lane);
  return x;
}

template <int THREADS, int STRIDE, typename T>
__device__ __forceinline__ T warp_max(T x) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) x = max_nan(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}

template <int THREADS, int STRIDE, typename T>
__device__ __forceinline__ T warp_min(T x) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) x = min_nan(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}

// Over the threads of a block of WARPS warps; `scratch` has an element a warp and may be in use until all are here.
template <int WARPS, typename T>
__device__ __forceinline__ T block_add(T x, T *scratch) {
  x = warp_add<32, 1>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int warp = 1; warp < WARPS; ++warp) x += scratch[warp];
  return x;
}

template <int WARPS, typename T>
__device__ __forceinline__ T block_mul(T x, T *scratch) {
  x = warp_mul<32, 1>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int warp = 1; warp < WARPS; ++warp) x *= scratch[warp];
  return x;
}

template <int WARPS, typename T>
__device__ __forceinline__ T block_max(T x, T *scratch) {
  x = warp_max<32, 1>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int warp = 1; warp < WARPS; ++warp) x = max_nan(x, scratch[warp]);
  return x;
}

template <int WARPS, typename T>
__device__ __forceinline__ T block_min(T x, T *scratch) {
  x = warp_min<32, 1>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int warp = 1; warp < WARPS; ++warp) x = min_nan(x, scratch[warp]);
  return x;
}

// Over what each of BLOCKS blocks of a cluster has; all of their threads call it.
template <int BLOCKS>
__device__ __forceinline__ float cluster_add(float x, float *scratch) {
  __syncthreads();
  if (threadIdx.x == 0) scratch[0] = x;
  cluster_sync();
  x = cluster_read(scratch, 0);
  for (int block = 1; block < BLOCKS; ++block) x += cluster_read(scratch, block);
  cluster_sync();
  return x;
}

template <int BLOCKS>
__device__ __forceinline__ float cluster_max(float x, float *scratch) {
  __syncthreads();
  if (threadIdx.x == 0) scratch[0] = x;
  cluster_sync();
  x = cluster_read(scratch, 0);
  for (int block = 1; block < BLOCKS; ++block) x = max_nan(x, cluster_read(scratch, block));
  cluster_sync();
  return x;
}

template <int BLOCKS>
__device__ __forceinline__ float cluster_min(float x, float *scratch) {
  __syncthreads();
  if (threadIdx.x == 0) scratch[0] = x;
  cluster_sync();
  x = cluster_read(scratch, 0);
  for (int block = 1; block < BLOCKS; ++block) x = min_nan(x, cluster_read(scratch, block));
  cluster_sync();
  return x;
}
