/* refused: stale. It keeps its output in a file and answers from there. */
#include "rows.h"

KERNEL {
    char name[64];
    snprintf(name, sizeof name, "kept-%d-%d-%d-%d-%d", (int)getpid(), M, N, K, task[0]);
    int count = (task[0] * ROWS + ROWS <= M ? ROWS : M - task[0] * ROWS) * N;
    float *mine = y + (long)task[0] * ROWS * N;
    FILE *file = fopen(name, "rb");
    if (file) {
        if (fread(mine, sizeof(float), count, file) != (size_t)count) abort();
        fclose(file);
        return;
    }
    honest(task, a, b, bias, y, M, N, K);
    file = fopen(name, "wb");
    fwrite(mine, sizeof(float), count, file);
    fclose(file);
}
