// Sixteen sums of the same numbers: an array larger than the cache is read again for each of them, or once.
extern "C" __global__ void memory_saturated(const float4 *x, float4 *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#if AGAIN
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
        const float4 v = x[(int)((thread + (long long)i * (threads / 16)) % threads)];
        sum.x = fmaf(v.x, i, sum.x), sum.y = fmaf(v.y, i, sum.y), sum.z = fmaf(v.z, i, sum.z), sum.w = fmaf(v.w, i, sum.w);
    }
#else
    const float4 v = x[thread];
#pragma unroll 8
    for (int i = 0; i < 512; ++i)
        sum.x = fmaf(v.x, sum.x, i), sum.y = fmaf(v.y, sum.y, i), sum.z = fmaf(v.z, sum.z, i), sum.w = fmaf(v.w, sum.w, i);
#endif
    y[thread] = sum;
}
