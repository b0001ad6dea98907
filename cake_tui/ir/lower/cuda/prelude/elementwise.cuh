// Maps of one element; a NaN goes in and comes out.

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

__device__ __forceinline__ float min_nan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ double min_nan(double a, double b) { return a < b || a != a ? a : b; }

__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ double max_nan(double a, double b) { return a > b || a != a ? a : b; }

template <typename T>
__device__ __forceinline__ T square(T x) {
  return x * x;
}

__device__ __forceinline__ float relu(float x) { return max_nan(x, 0.0f); }

__device__ __forceinline__ double relu(double x) { return x < 0 ? 0 : x; }
