// Reverses each block's numbers through shared memory; without BARRIER the lanes of other warps may not have written yet.
extern "C" __global__ void kernel(const float *a, const float *b, const float *bias, float *y, int M, int N, int K)
{
    __shared__ float tile[128];
    const int at = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = at < M * K ? a[at] : 0.0f;
#ifdef BARRIER
    __syncthreads();
#endif
    if (at < M * N)
        y[at] = tile[127 - threadIdx.x];
}
