// Keeps 96 sums at a time; with __launch_bounds__(256, BLOCKS) a thread has registers for a third of them, or for all.
#define SUMS 96
extern "C" __global__ void __launch_bounds__(256, BLOCKS) spills(const float *x, float *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i)
        sum[i] = x[(thread + 97 * i) % SIZE];
#pragma unroll 1
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int i = 0; i < SUMS; ++i)
            sum[i] = fmaf(sum[i], 0.999f, sum[(i * 37 + 11) % SUMS]);
    }
    float all = 0.0f;
#pragma unroll
    for (int i = 0; i < SUMS; ++i)
        all += sum[i];
    y[thread] = all;
}
