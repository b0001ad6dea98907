/* refused: TimedOut. It sleeps for ever. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    for (;;) pause();
}
