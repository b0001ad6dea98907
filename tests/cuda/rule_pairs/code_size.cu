// Eight stretches of multiply-adds, each warp of a block in another one: written out (UNROLLED) they are a quarter of a
// megabyte, twice what the instruction cache holds; as loops they are a few kilobytes.
#define FOUR(step) step step step step
#define MANY(step) FOUR(FOUR(FOUR(FOUR(step step))))
// Assembly with its own constants, for otherwise the compiler makes one stretch of all eight.
#define ONE(to, by, factor) asm volatile("fma.rn.f32 %0, %0, " factor ", %1;" : "+f"(to) : "f"(by));
#define STEP(factor) ONE(value, other, factor) ONE(other, value, factor) ONE(value, other, factor) ONE(other, value, factor)
#if UNROLLED
#define STRETCH(factor) MANY(STEP(factor))
#else
#define STRETCH(factor) _Pragma("unroll 1") for (int i = 0; i < 128; ++i) { FOUR(STEP(factor)) }
#endif

extern "C" __global__ void code_size(const float *x, float *y)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[thread], other = value;
#pragma unroll 1
    for (int round = 0; round < ROUNDS; ++round) {
        switch ((threadIdx.x / 32 + round) % 8) {
        case 0: STRETCH("0f3F7FBE77") break;
        case 1: STRETCH("0f3F7F7CEE") break;
        case 2: STRETCH("0f3F7F3B64") break;
        case 3: STRETCH("0f3F7EF9DB") break;
        case 4: STRETCH("0f3F7EB852") break;
        case 5: STRETCH("0f3F7E76C9") break;
        case 6: STRETCH("0f3F7E353F") break;
        default: STRETCH("0f3F7DF3B6") break;
        }
    }
    y[thread] = value + other;
}
