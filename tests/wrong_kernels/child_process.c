/* refused: state. It leaves a child process behind. */
#include "rows.h"

KERNEL {
    honest(task, a, b, bias, y, M, N, K);
    static _Atomic int once;
    if (!once++ && fork() == 0) {
        sleep(30);
        _exit(0);
    }
}
