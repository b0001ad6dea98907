// A block sums a row: within a warp by shuffles, across warps through shared memory.
extern "C" __global__ void __launch_bounds__(128) row_sum(
    const float *__restrict__ x, float *__restrict__ y, int M, int N) {
  __shared__ float parts[4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int m = blockIdx.x; m < M; m += gridDim.x) {
    float sum = 0.0f;
    for (int n = threadIdx.x; n < N; n += 128) sum += x[m * N + n];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[m] = parts[0] + parts[1] + parts[2] + parts[3];
    __syncthreads();
  }
}
