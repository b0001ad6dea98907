/* refused: state. It takes over a signal. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    signal(SIGUSR2, SIG_IGN);
}
