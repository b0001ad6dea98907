/* What this machine reaches: independent multiply-add chains on every thread, and streams through memory.
 *
 * Compiled for the kernels' own architecture; the runtime's pool hands the tasks out. VECTOR_BYTES is the widest
 * vector's. Twelve chains hide the latency of two units (at most five cycles each) and fit sixteen registers.
 */
#include <stdint.h>
#include <string.h>

#define LANES (VECTOR_BYTES / 4)
#define CHAINS 12
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

typedef float vector __attribute__((vector_size(VECTOR_BYTES)));

static float first_of(vector value) {
    union { vector all; float lane[LANES]; } view = {value};
    return view.lane[0];
}

/* CHAINS * LANES multiply-adds a round. The sums run towards 1, so that no number ever becomes denormal. */
void multiply_add(const int task[3], float *out, int rounds) {
    const vector zero = {0}, scale = zero + 0.999f, step = zero + 0.001f;
#define DECLARE(i) vector sum##i = step * (float)i;
    EACH(DECLARE)
    for (int round = 0; round < rounds; round++) {
#define ADD(i) sum##i = sum##i * scale + step;
        EACH(ADD)
    }
    vector all = zero;
#define JOIN(i) all += sum##i;
    EACH(JOIN)
    out[task[0]] = first_of(all);
}

/* One task's part of a copy: `kib` KiB. */
void copy_vectors(const int task[3], const char *from, char *to, int kib) {
    const int64_t bytes = (int64_t)kib << 10;
    const vector *source = (const vector *)(from + task[0] * bytes);
    vector *target = (vector *)(to + task[0] * bytes);
    for (int64_t i = 0; i < bytes / VECTOR_BYTES; i++) {
        target[i] = source[i];
        __asm__ volatile("" ::: "memory"); /* or the compiler calls the library, which is `copy_library` */
    }
}

void copy_library(const int task[3], const char *from, char *to, int kib) {
    const int64_t bytes = (int64_t)kib << 10;
    memcpy(to + task[0] * bytes, from + task[0] * bytes, (size_t)bytes);
}

/* One task's part of a read: every element goes into a sum. */
void read_all(const int task[3], const char *from, float *out, int kib) {
    const int64_t bytes = (int64_t)kib << 10;
    const vector *source = (const vector *)(from + task[0] * bytes);
    vector a = {0}, b = {0}, c = {0}, d = {0};
    for (int64_t i = 0; i < bytes / VECTOR_BYTES; i += 4) {
        a += source[i];
        b += source[i + 1];
        c += source[i + 2];
        d += source[i + 3];
    }
    out[task[0]] = first_of(a + b + c + d);
}
