// Atomic updates of memory, in the order that the machine takes them.

template <typename T>
__device__ __forceinline__ void atomic_add(T *at, T value) {
  atomicAdd(at, value);
}

__device__ __forceinline__ void atomic_max(int *at, int value) { atomicMax(at, value); }

__device__ __forceinline__ void atomic_min(int *at, int value) { atomicMin(at, value); }

// Floats compare as whole numbers where both are positive, the other way round where both are negative.
__device__ __forceinline__ void atomic_max(float *at, float value) {
  if (value >= 0)
    atomicMax(reinterpret_cast<int *>(at), __float_as_int(value));
  else
    atomicMin(reinterpret_cast<unsigned *>(at), __float_as_uint(value));
}

__device__ __forceinline__ void atomic_min(float *at, float value) {
  if (value >= 0)
    atomicMin(reinterpret_cast<int *>(at), __float_as_int(value));
  else
    atomicMax(reinterpret_cast<unsigned *>(at), __float_as_uint(value));
}
