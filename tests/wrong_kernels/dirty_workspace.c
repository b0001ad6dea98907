/* refused: stale. It takes its workspace to be zero. */
/* workspace */
#include "rows.h"

void entry(const int task[3], const float *a, const float *b, const float *bias, float *y, float *space, int M, int N, int K) {
    EACH_ROW(i) EACH_COLUMN(j) {
        space[i * N + j] += dot(a, b, N, K, i, j) + bias[j];
        y[i * N + j] = relu(space[i * N + j]);
    }
}
