// The last steps of a loop: lanes leave it one by one (UNEVEN), or all at once.
extern "C" __global__ void tail_divergence(const float *x, float *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32;
    const int rounds = UNEVEN ? 1 + 2 * lane * lane : 660;
    float value = x[thread];
#pragma unroll 1
    for (int i = 0; i < rounds; ++i)
        value = fmaf(value, 0.999f, __sinf(value));
    y[thread] = value;
}
