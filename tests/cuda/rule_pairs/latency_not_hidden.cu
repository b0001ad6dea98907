// Adds up numbers far apart, one load after the other (AHEAD 1) or AHEAD of them in flight.
extern "C" __global__ void latency_not_hidden(const float *x, float *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < COUNT; i += AHEAD) {
        float next[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
            next[j] = x[(i + j) * threads + thread];
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
            sum += next[j];
    }
    y[thread] = sum;
}
