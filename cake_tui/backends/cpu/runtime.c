/* The evaluator's C side: a pool of threads and the timed batch runner; what watches over them is in `watch.c`.
 *
 * Compiled once per compiler and kept in the cache; called through ctypes. Tasks of a launch are handed out by
 * one atomic ticket (generation in the high half, next task in the low half), so a thread that arrives late
 * can never take a task of another launch. No thread is created per launch.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MAX_THREADS 1024
#define MAX_ARGUMENTS 24
#define CLOSED 0xFFFFFFFFu
#define SPIN_NS 100000
#define STACK_BYTES (16u << 20)

typedef uintptr_t word;

struct cake_launch {
    void *entry;
    int32_t grid[3];
    int32_t arguments;
    word argument[MAX_ARGUMENTS];
};

struct cake_batch {
    const struct cake_launch *launches;
    int32_t launch_count;
    int32_t repeats;
    uint32_t *touch;           /* one input element that changes before each repeat, or NULL; it ends with the first bits */
    const uint32_t *touch_bits;
    int32_t touch_count;
    int32_t backward;          /* hand tasks out from the last to the first */
    void *const *flush;        /* ranges to drop from the caches before each repeat, outside the time */
    const uint64_t *flush_bytes;
    int32_t flush_count;
    int32_t state_changed;     /* out: a thread came back with another rounding mode */
    int64_t ns;                /* out */
    int64_t busy_max_ns;       /* out: sum over launches of the busiest thread */
    int64_t busy_mean_ns;      /* out: sum over launches of the mean */
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void relax(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The bits that say how this thread rounds; status bits are masked off. */
static uint64_t float_state(void) {
#if defined(__x86_64__)
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return ((uint64_t)x87 << 32) | (_mm_getcsr() & 0xFFC0u);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
#else
    return 0;
#endif
}

static void set_float_state(uint64_t state) {
#if defined(__x86_64__)
    uint16_t x87 = (uint16_t)(state >> 32);
    __asm__ volatile("fldcw %0" : : "m"(x87));
    _mm_setcsr((uint32_t)state);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
#else
    (void)state;
#endif
}

/* --- the pool --- */

static struct {
    int threads;
    _Atomic uint64_t ticket;
    _Atomic uint32_t epoch, sleepers;
    _Atomic uint32_t total, completed;
    _Atomic(const struct cake_launch *) launch;
    _Atomic int backward;
    _Atomic int state_changed;
    struct { _Atomic int64_t busy; char pad[56]; } thread[MAX_THREADS];
    pthread_t handle[MAX_THREADS];
    cpu_set_t first; /* where the caller's part runs; empty: anywhere */
} pool;

/* All arguments are pointers or ints. Both calling conventions served here (x86-64 and AArch64 Linux) put
 * either in one 8-byte slot and let the caller clean up, so one signature with spare slots calls any entry. */
typedef void (*entry6)(const int *, word, word, word, word, word);
typedef void (*entry12)(const int *, word, word, word, word, word, word, word, word, word, word, word);
typedef void (*entry24)(const int *, word, word, word, word, word, word, word, word, word, word, word, word,
                        word, word, word, word, word, word, word, word, word, word, word, word);

static void call(const struct cake_launch *l, uint32_t index) {
    const word *a = l->argument;
    uint32_t gx = (uint32_t)l->grid[0], gy = (uint32_t)l->grid[1];
    const int task[3] = {(int)(index % gx), (int)(index / gx % gy), (int)(index / gx / gy)};
    if (l->arguments <= 5)
        ((entry6)l->entry)(task, a[0], a[1], a[2], a[3], a[4]);
    else if (l->arguments <= 11)
        ((entry12)l->entry)(task, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    else
        ((entry24)l->entry)(task, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
                            a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
}

/* Take tasks of the current launch until there are none; returns the ticket that it saw last. */
static uint64_t work(int self) {
    uint64_t state = float_state();
    int64_t begin = 0;
    for (;;) {
        uint64_t ticket = atomic_load(&pool.ticket);
        uint32_t index = (uint32_t)ticket;
        if (index == CLOSED) return ticket;
        const struct cake_launch *launch = atomic_load(&pool.launch);
        uint32_t total = atomic_load(&pool.total);
        int backward = atomic_load(&pool.backward);
        if (index >= total) return ticket;
        if (!atomic_compare_exchange_weak(&pool.ticket, &ticket, ticket + 1)) continue;
        if (!begin) begin = now_ns();
        call(launch, backward ? total - 1 - index : index);
        if (float_state() != state) {
            set_float_state(state);
            atomic_store(&pool.state_changed, 1);
        }
        int64_t end = now_ns();
        atomic_fetch_add_explicit(&pool.thread[self].busy, end - begin, memory_order_relaxed);
        begin = end;
        atomic_fetch_add(&pool.completed, 1);
    }
}

void cake_handle_faults_here(void); /* watch.c */

static void *serve(void *argument) {
    int self = (int)(intptr_t)argument;
    cake_handle_faults_here();
    for (;;) {
        uint64_t seen = work(self);
        int64_t limit = 0;
        for (uint32_t spins = 0; atomic_load(&pool.ticket) == seen; spins++) {
            relax();
            if (spins % 64) continue;
            int64_t now = now_ns();
            if (!limit) limit = now + SPIN_NS;
            if (now < limit) continue;
            uint32_t epoch = atomic_load(&pool.epoch);
            atomic_fetch_add(&pool.sleepers, 1);
            if (atomic_load(&pool.ticket) == seen)
                syscall(SYS_futex, &pool.epoch, FUTEX_WAIT_PRIVATE, epoch, NULL, NULL, 0);
            atomic_fetch_sub(&pool.sleepers, 1);
        }
    }
    return NULL;
}

int cake_start(int threads) {
    if (threads < 1 || threads > MAX_THREADS) return -1;
    pool.threads = threads;
    atomic_store(&pool.ticket, CLOSED);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 1; i < threads; i++) {
        int error = pthread_create(&pool.handle[i], &attributes, serve, (void *)(intptr_t)i);
        if (error) return error;
    }
    pthread_attr_destroy(&attributes);
    cake_handle_faults_here();
    return 0;
}

/* Give each thread a processor of its own, for beside other programs two of them may share one for seconds; NULL:
 * let them run where the caller may. The caller is on the first only while it runs a batch, for what it starts must
 * not inherit that. */
void cake_pin(const int32_t *processors) {
    cpu_set_t all;
    CPU_ZERO(&pool.first);
    if (sched_getaffinity(0, sizeof all, &all)) return;
    if (processors) CPU_SET(processors[0], &pool.first);
    for (int i = 1; i < pool.threads; i++) {
        cpu_set_t own;
        CPU_ZERO(&own);
        if (processors) CPU_SET(processors[i], &own);
        else own = all;
        pthread_setaffinity_np(pool.handle[i], sizeof own, &own);
    }
}

/* Whether all threads but the caller sleep. */
int cake_asleep(void) { return atomic_load(&pool.sleepers) + 1 >= (uint32_t)pool.threads; }

static void run_launch(const struct cake_launch *launch, struct cake_batch *batch) {
    uint64_t generation = atomic_load(&pool.ticket) >> 32;
    atomic_store(&pool.ticket, (generation + 1) << 32 | CLOSED);
    uint32_t total = (uint32_t)launch->grid[0] * (uint32_t)launch->grid[1] * (uint32_t)launch->grid[2];
    atomic_store(&pool.launch, launch);
    atomic_store(&pool.total, total);
    atomic_store(&pool.backward, batch->backward);
    atomic_store(&pool.completed, 0);
    for (int i = 0; i < pool.threads; i++) atomic_store_explicit(&pool.thread[i].busy, 0, memory_order_relaxed);
    atomic_store(&pool.ticket, (generation + 2) << 32);
    atomic_fetch_add(&pool.epoch, 1);
    if (atomic_load(&pool.sleepers))
        syscall(SYS_futex, &pool.epoch, FUTEX_WAKE_PRIVATE, pool.threads, NULL, NULL, 0);
    work(0);
    for (uint32_t spins = 0; atomic_load(&pool.completed) < total; spins++) {
        relax();
        if (spins > 20000 && spins % 64 == 0) sched_yield();
    }
    int64_t most = 0, sum = 0;
    for (int i = 0; i < pool.threads; i++) {
        int64_t busy = atomic_load_explicit(&pool.thread[i].busy, memory_order_relaxed);
        sum += busy;
        if (busy > most) most = busy;
    }
    batch->busy_max_ns += most;
    batch->busy_mean_ns += sum / pool.threads;
}

void cake_flush(const void *data, uint64_t bytes) {
#if defined(__x86_64__)
    for (uint64_t i = 0; i < bytes; i += 64) _mm_clflush((const char *)data + i);
    _mm_mfence();
#elif defined(__aarch64__)
    for (uint64_t i = 0; i < bytes; i += 64) __asm__ volatile("dc civac, %0" : : "r"((const char *)data + i) : "memory");
    __asm__ volatile("dsb ish" ::: "memory");
#endif
}

void cake_run(struct cake_batch *batch) {
    batch->ns = batch->busy_max_ns = batch->busy_mean_ns = 0;
    atomic_store(&pool.state_changed, 0);
    cpu_set_t before;
    int pinned = CPU_COUNT(&pool.first) && !sched_getaffinity(0, sizeof before, &before);
    if (pinned) sched_setaffinity(0, sizeof pool.first, &pool.first);
    int64_t begin = now_ns();
    for (int r = 0; r < batch->repeats; r++) {
        if (batch->touch) *batch->touch = batch->touch_bits[(batch->repeats - 1 - r) % batch->touch_count];
        if (batch->flush_count) {
            for (int i = 0; i < batch->flush_count; i++) cake_flush(batch->flush[i], batch->flush_bytes[i]);
            begin = now_ns();
        }
        for (int i = 0; i < batch->launch_count; i++) run_launch(&batch->launches[i], batch);
        if (batch->flush_count) batch->ns += now_ns() - begin;
    }
    if (!batch->flush_count) batch->ns = now_ns() - begin;
    batch->state_changed = atomic_load(&pool.state_changed);
    if (pinned) sched_setaffinity(0, sizeof before, &before);
}

/* Nanoseconds for `adds` additions, each of which needs the one before. */
int64_t cake_rate(uint64_t adds) {
    uint64_t sum = 0, one = 1;
    __asm__ volatile("" : "+r"(one));
    int64_t begin = now_ns();
    for (uint64_t i = 0; i < adds; i += 16) {
#define ADD sum += one; __asm__ volatile("" : "+r"(sum));
        ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
    }
    return now_ns() - begin;
}

uint64_t cake_float_state(void) { return float_state(); }

void cake_erf(double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) values[i] = erf(values[i]);
}
