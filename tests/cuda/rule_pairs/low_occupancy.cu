// A chain of multiply-adds a thread: one warp a multiprocessor, or as many as fit. The grid makes the difference.
extern "C" __global__ void low_occupancy(const float *x, float *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[thread];
#pragma unroll 4
    for (int i = 0; i < ROUNDS; ++i)
        value = fmaf(value, 0.999f, 0.5f);
    y[thread] = value;
}
