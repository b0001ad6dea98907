/* refused: guard. It writes behind its workspace. */
/* workspace */
#include "rows.h"

void entry(const int task[3], const float *a, const float *b, const float *bias, float *y, float *space, int M, int N, int K) {
    honest(task, a, b, bias, y, M, N, K);
    space[(long)M * N + 5] = 1.0f;
}
