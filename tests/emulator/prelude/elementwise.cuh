// Maps of one element whose hardware instructions keep a NaN.

__device__ __forceinline__ float min_nan(float a, float b) { return a < b || a != a ? a : b; }

__device__ __forceinline__ float max_nan(float a, float b) { return a > b || a != a ? a : b; }
