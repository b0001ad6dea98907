/* refused: state. It leaves the processor flushing denormals. */
#include "rows.h"

KERNEL {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#else
    fesetround(FE_UPWARD);
#endif
    honest(task, a, b, bias, y, M, N, K);
}
