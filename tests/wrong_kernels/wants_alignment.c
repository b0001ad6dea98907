/* refused: Crashed. It loads vectors as if each row were aligned. */
#include "rows.h"

KERNEL {
    EACH_ROW(i) {
#if defined(__x86_64__)
        __asm__ volatile("movaps %0, %%xmm0" : : "m"(a[i * K]) : "xmm0");
#else
        if ((uintptr_t)(a + i * K) % 16) abort();
#endif
    }
    honest(task, a, b, bias, y, M, N, K);
}
