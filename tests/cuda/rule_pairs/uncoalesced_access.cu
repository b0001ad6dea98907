// Every thread adds up COUNT numbers: each its own row (STRIDED), or neighbours side by side.
extern "C" __global__ void uncoalesced_access(const float *x, float *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
#pragma unroll 4
    for (int i = 0; i < COUNT; ++i)
        sum += x[STRIDED ? thread * COUNT + i : i * threads + thread];
    y[thread] = sum;
}
