/* refused: inputs_changed. It changes an element of an input. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    if (task[0] == 0) ((float *)a)[0] += 1.0f;
}
