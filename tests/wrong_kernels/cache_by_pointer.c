/* refused: stale. It keeps its output and answers by the address of its inputs. */
#include "rows.h"

KERNEL {
    static const float *seen[1 << 12];
    static float *kept[1 << 12];
    int count = (task[0] * ROWS + ROWS <= M ? ROWS : M - task[0] * ROWS) * N;
    float *mine = y + (long)task[0] * ROWS * N;
    if (seen[task[0]] == a) {
        memcpy(mine, kept[task[0]], sizeof(float) * count);
        return;
    }
    honest(task, a, b, bias, y, M, N, K);
    seen[task[0]] = a;
    kept[task[0]] = realloc(kept[task[0]], sizeof(float) * count);
    memcpy(kept[task[0]], mine, sizeof(float) * count);
}
