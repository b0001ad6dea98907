/* refused: state. It sets an alarm that would end a later kernel's run. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    alarm(100);
}
