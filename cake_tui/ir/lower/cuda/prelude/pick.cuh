// The least or the greatest value with its index; of equal values the one with the lower index.

struct Least {
  template <typename T>
  __device__ __forceinline__ static bool better(T a, T b) { return a < b; }
};

struct Greatest {
  template <typename T>
  __device__ __forceinline__ static bool better(T a, T b) { return a > b; }
};

template <typename Order, typename T>
__device__ __forceinline__ void take(T &value, int &index, T other, int other_index) {
  if (Order::better(other, value) || (other == value && other_index < index)) {
    value = other;
    index = other_index;
  }
}

// Over THREADS lanes of a warp that stand STRIDE apart; all of them get the pair.
template <typename Order, int THREADS, int STRIDE, typename T>
__device__ __forceinline__ void warp_pick(T &value, int &index) {
#pragma unroll
  for (int lane = STRIDE * THREADS / 2; lane >= STRIDE; lane /= 2) {
    const T other = __shfl_xor_sync(~0u, value, lane);
    const int other_index = __shfl_xor_sync(~0u, index, lane);
    take<Order>(value, index, other, other_index);
  }
}

// Over the threads of a block of WARPS warps; `scratch` has two elements a warp.
template <typename Order, int WARPS>
__device__ __forceinline__ void block_pick(float &value, int &index, float *scratch) {
  warp_pick<Order, 32, 1>(value, index);
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    scratch[threadIdx.x / 32] = value;
    scratch[WARPS + threadIdx.x / 32] = __int_as_float(index);
  }
  __syncthreads();
  value = scratch[0];
  index = __float_as_int(scratch[WARPS]);
#pragma unroll
  for (int warp = 1; warp < WARPS; ++warp)
    take<Order>(value, index, scratch[warp], __float_as_int(scratch[WARPS + warp]));
}

// Puts a pair in its place among COUNT pairs, the greatest first; the last one falls out.
template <int COUNT, typename T>
__device__ __forceinline__ void put_in_order(T (&values)[COUNT], int (&indices)[COUNT], T value, int index) {
#pragma unroll
  for (int place = 0; place < COUNT; ++place) {
    if (value > values[place] || (value == values[place] && index < indices[place])) {
      const T value_behind = values[place];
      const int index_behind = indices[place];
      values[place] = value;
      indices[place] = index;
      value = value_behind;
      index = index_behind;
    }
  }
}
