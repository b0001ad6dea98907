// 16384 multiply-adds written out one after the other, more than the instruction cache holds (UNROLLED), or as a loop.
#define FOUR(step) step step step step
#define MANY(step) FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(step))))))

extern "C" __global__ void code_size(const float *x, float *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[thread], other = value;
#pragma unroll 1
    for (int round = 0; round < ROUNDS; ++round) {
        // Warps are at different places of the code, as they are after a few hundred uneven steps.
        if (threadIdx.x / 32 % 4 == round % 4)
            other = __sinf(other);
#if UNROLLED
        MANY(value = fmaf(value, 0.999f, other); other = fmaf(other, 0.998f, value);
             value = fmaf(value, 0.997f, other); other = fmaf(other, 0.996f, value);)
#else
#pragma unroll 1
        for (int i = 0; i < 256; ++i) {
            FOUR(FOUR(value = fmaf(value, 0.999f, other); other = fmaf(other, 0.998f, value);
                      value = fmaf(value, 0.997f, other); other = fmaf(other, 0.996f, value);))
        }
#endif
    }
    y[thread] = value + other;
}
