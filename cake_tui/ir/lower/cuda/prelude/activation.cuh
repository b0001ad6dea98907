// Activations; the forms lose no digits where their parts nearly cancel.

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ __forceinline__ double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

__device__ __forceinline__ double silu(double x) { return x / (1.0 + exp(-x)); }

__device__ __forceinline__ float gelu_erf(float x) { return 0.5f * x * erfcf(x * -0.70710678118654752f); }

__device__ __forceinline__ double gelu_erf(double x) { return 0.5 * x * erfc(x * -0.70710678118654752); }

__device__ __forceinline__ float gelu_tanh(float x) {
  return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
}

__device__ __forceinline__ double gelu_tanh(double x) {
  return x / (1.0 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}
