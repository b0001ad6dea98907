// Streams an array through WORK multiply-adds an element: none to speak of, or so many that memory waits.
extern "C" __global__ void memory_bound(const float4 *x, float4 *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = x[thread];
#pragma unroll 8
    for (int i = 0; i < WORK; ++i) {
        v.x = fmaf(v.x, 0.999f, 0.5f);
        v.y = fmaf(v.y, 0.999f, 0.5f);
        v.z = fmaf(v.z, 0.999f, 0.5f);
        v.w = fmaf(v.w, 0.999f, 0.5f);
    }
    y[thread] = v;
}
