// Bank conflicts in plenty, but little time is spent there: most of it goes into a tail in which few lanes work.
extern "C" __global__ void conflicts_and_tail(const float *x, float *y)
{
    __shared__ volatile float tile[32][32];
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32;
    float value = x[thread];
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
        tile[lane][i] = value;
        __syncwarp();
        value += tile[lane][i];
    }
#pragma unroll 1
    for (int i = 0; i < 2 * lane * lane; ++i)
        value = fmaf(value, 0.999f, __sinf(value));
    y[thread] = value;
}
