// ---- harness: a pool of threads, the time ----
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static int cake_threads = CAKE_THREADS;
static atomic_uint cake_epoch, cake_next, cake_left;
static size_t cake_current;
static pthread_mutex_t cake_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cake_wake = PTHREAD_COND_INITIALIZER;

static unsigned cake_total(size_t launch) {
  const int *grid = cake_launches[launch].grid;
  return (unsigned)grid[0] * (unsigned)grid[1] * (unsigned)grid[2];
}

static void cake_drain(void) {
  const int *grid = cake_launches[cake_current].grid;
  unsigned total = cake_total(cake_current), at;
  while ((at = atomic_fetch_add(&cake_next, 1)) < total) {
    int task[3] = {(int)(at % (unsigned)grid[0]), (int)(at / (unsigned)grid[0] % (unsigned)grid[1]),
                   (int)(at / (unsigned)grid[0] / (unsigned)grid[1])};
    cake_launches[cake_current].task(task);
  }
}

static void *cake_worker(void *argument) {
  unsigned seen = 0;
  (void)argument;
  for (;;) {
    for (int spin = 0; spin < 20000 && atomic_load(&cake_epoch) == seen; ++spin) {
    }
    if (atomic_load(&cake_epoch) == seen) {
      pthread_mutex_lock(&cake_mutex);
      while (atomic_load(&cake_epoch) == seen) pthread_cond_wait(&cake_wake, &cake_mutex);
      pthread_mutex_unlock(&cake_mutex);
    }
    seen = atomic_load(&cake_epoch);
    cake_drain();
    atomic_fetch_sub(&cake_left, 1);
  }
  return NULL;
}

static void cake_run(void) {
  for (size_t launch = 0; launch < CAKE_COUNT(cake_launches); ++launch) {
    cake_current = launch;
    atomic_store(&cake_next, 0);
    atomic_store(&cake_left, (unsigned)cake_threads - 1);
    pthread_mutex_lock(&cake_mutex);
    atomic_fetch_add(&cake_epoch, 1);
    pthread_cond_broadcast(&cake_wake);
    pthread_mutex_unlock(&cake_mutex);
    cake_drain();
    while (atomic_load(&cake_left) != 0) {
    }
  }
}

// A kernel that writes where it reads begins each sample with what it was given.
static void cake_restore(void) {
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b)
    if (cake_buffers[b].role == 'x')
      memcpy(cake_buffers[b].data, cake_buffers[b].given, cake_buffers[b].count * cake_buffers[b].size);
}

static double cake_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Draw inputs, run the kernel once and compare.
static int cake_trial(int integers, double *worst) {
  cake_fill(integers);
  cake_run();
  return cake_check(integers, worst);
}

int main(int count, char **words) {
  if (count > 1) cake_threads = atoi(words[1]);
  if (cake_threads < 1 || cake_threads > 1024) return fprintf(stderr, "threads: 1 to 1024\n"), 2;
  for (size_t b = 0; b < CAKE_COUNT(cake_buffers); ++b) {
    size_t bytes = (cake_buffers[b].count * cake_buffers[b].size + 63) / 64 * 64;
    cake_buffers[b].data = aligned_alloc(64, bytes ? bytes : 64);
    cake_buffers[b].given = cake_buffers[b].role == 'x' ? malloc(bytes ? bytes : 64) : cake_buffers[b].data;
    if (!cake_buffers[b].data || !cake_buffers[b].given) return fprintf(stderr, "out of memory\n"), 3;
  }
  for (int t = 1; t < cake_threads; ++t) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, cake_worker, NULL)) return fprintf(stderr, "no thread\n"), 3;
    pthread_detach(thread);
  }
  double worst = 0.0, times[31];
  int passed = cake_both(cake_trial(1, &worst), cake_trial(0, &worst));
  double began = cake_seconds();
  cake_run();
  double once = cake_seconds() - began;
  int repeats = once > 0.01 ? 1 : (int)(0.01 / (once + 1e-9)) + 1;
  for (size_t s = 0; s < CAKE_COUNT(times); ++s) {
    cake_restore();
    began = cake_seconds();
    for (int r = 0; r < repeats; ++r) cake_run();
    times[s] = (cake_seconds() - began) / repeats * 1e6;
  }
  passed = cake_both(passed, cake_trial(0, &worst));  // other inputs at the same places: nothing may be remembered
  qsort(times, CAKE_COUNT(times), sizeof times[0], cake_compare);
  cake_report(passed, worst);
  printf(", \"time_us\": %.6g, \"fastest_us\": %.6g, \"threads\": %d}\n", times[CAKE_COUNT(times) / 2], times[0],
         cake_threads);
  cake_hold(times[CAKE_COUNT(times) / 2], times[0]);
  return passed == 0 ? 7 : 0;
}
