/* refused: state. It leaves another rounding mode behind. */
#include "rows.h"

KERNEL {
    fesetround(FE_TOWARDZERO);
    honest(task, a, b, bias, y, M, N, K);
}
