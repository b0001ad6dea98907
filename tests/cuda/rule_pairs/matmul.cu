// y = a · b of SIZE x SIZE: every operand read where it lies (STAGED 0), or tiles of 16 steps in shared memory,
// with BLOCK x BLOCK results a thread.
#define TILE (16 * BLOCK)
extern "C" __global__ void __launch_bounds__(256) matmul(const float *a, const float *b, float *out)
{
    const int x = threadIdx.x, y = threadIdx.y;
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sum[BLOCK][BLOCK] = {};
#if STAGED
    __shared__ float a_tile[16][TILE + 4], b_tile[16][TILE];
    for (int k0 = 0; k0 < SIZE; k0 += 16) {
#pragma unroll
        for (int i = 0; i < BLOCK; ++i) {
            a_tile[x][y + 16 * i] = a[(row0 + y + 16 * i) * SIZE + k0 + x];
            b_tile[y][x + 16 * i] = b[(k0 + y) * SIZE + column0 + x + 16 * i];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float left[BLOCK], right[BLOCK];
#pragma unroll
            for (int i = 0; i < BLOCK; ++i)
                left[i] = a_tile[k][y * BLOCK + i], right[i] = b_tile[k][x + 16 * i];
#pragma unroll
            for (int i = 0; i < BLOCK; ++i)
#pragma unroll
                for (int j = 0; j < BLOCK; ++j)
                    sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
        }
        __syncthreads();
    }
#else
#pragma unroll 4
    for (int k = 0; k < SIZE; ++k)
#pragma unroll
        for (int i = 0; i < BLOCK; ++i)
#pragma unroll
            for (int j = 0; j < BLOCK; ++j)
                sum[i][j] = fmaf(a[(row0 + y * BLOCK + i) * SIZE + k], b[k * SIZE + column0 + x + 16 * j], sum[i][j]);
#endif
#pragma unroll
    for (int i = 0; i < BLOCK; ++i)
#pragma unroll
        for (int j = 0; j < BLOCK; ++j)
            out[(row0 + y * BLOCK + i) * SIZE + column0 + x + 16 * j] = sum[i][j];
}
