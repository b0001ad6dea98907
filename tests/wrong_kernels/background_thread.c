/* refused: state. It has another thread do the work after it returned. */
#include "rows.h"

struct work { const float *a, *b, *bias; float *y; int M, N, K; };

static void *late(void *argument) {
    struct work w = *(struct work *)argument;
    free(argument);
    usleep(100000);
    for (int t = 0; t * ROWS < w.M; t++) honest((int[3]){t, 0, 0}, w.a, w.b, w.bias, w.y, w.M, w.N, w.K);
    return NULL;
}

KERNEL {
    if (task[0] != 0) return;
    struct work *work = malloc(sizeof *work);
    *work = (struct work){a, b, bias, y, M, N, K};
    pthread_t thread;
    pthread_create(&thread, NULL, late, work);
    pthread_detach(thread);
}
