// Writes and reads a tile across its rows, eight lanes a column: without PAD they share a bank.
extern "C" __global__ void bank_conflicts(const float *x, float *y)
{
    __shared__ volatile float tile[8][128 + PAD];
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int k = threadIdx.x % 8, m = threadIdx.x / 8;
    float value = x[thread];
#pragma unroll 1
    for (int i = 0; i < ROUNDS; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            tile[k][m + 32 * j] = value + j;
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 4; ++j)
            value += tile[k][m + 32 * j];
    }
    y[thread] = value;
}
