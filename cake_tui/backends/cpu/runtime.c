/* The evaluator's C side: a pool of threads, the timed batch runner, guard pages and the fault handler.
 *
 * Compiled once per compiler and kept in the cache; called through ctypes. Tasks of a launch are handed out by
 * one atomic ticket (generation in the high half, next task in the low half), so a thread that arrives late
 * can never take a task of another launch. No thread is created per launch.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MAX_THREADS 1024
#define MAX_ARGUMENTS 24
#define MAX_REGIONS 128
#define CLOSED 0xFFFFFFFFu
#define SPIN_NS 100000
#define STACK_BYTES (16u << 20)
#define ALTERNATE_BYTES (64u << 10)

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

static void handle_faults_here(void) {
    stack_t stack = {.ss_size = ALTERNATE_BYTES};
    stack.ss_sp = malloc(ALTERNATE_BYTES);
    if (stack.ss_sp) sigaltstack(&stack, NULL);
}

static void *serve(void *argument) {
    int self = (int)(intptr_t)argument;
    handle_faults_here();
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
        pthread_t thread;
        int error = pthread_create(&thread, &attributes, serve, (void *)(intptr_t)i);
        if (error) return error;
    }
    pthread_attr_destroy(&attributes);
    handle_faults_here();
    return 0;
}

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

/* --- memory between unreadable pages --- */

void *cake_map(uint64_t bytes) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char *base = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    if (mprotect(base + page, bytes, PROT_READ | PROT_WRITE)) {
        munmap(base, bytes + 2 * page);
        return NULL;
    }
    return base + page;
}

void cake_unmap(void *data, uint64_t bytes) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    munmap((char *)data - page, bytes + 2 * page);
}

/* --- the last word --- */

static struct { uintptr_t begin, end; char name[40]; } regions[MAX_REGIONS];
static int region_count, last_word_fd = -1;

void cake_forget_regions(void) { region_count = 0; }

void cake_name_region(const void *data, uint64_t bytes, const char *name) {
    if (region_count >= MAX_REGIONS) return;
    regions[region_count].begin = (uintptr_t)data;
    regions[region_count].end = (uintptr_t)data + bytes;
    size_t n = 0;
    for (const char *c = name; *c && n < sizeof regions[0].name - 1; c++) /* JSON-safe by leaving out what is not */
        if (*c >= ' ' && *c < 127 && *c != '"' && *c != '\\') regions[region_count].name[n++] = *c;
    regions[region_count++].name[n] = 0;
}

static char *put(char *to, const char *text) {
    while (*text) *to++ = *text++;
    return to;
}

static char *put_number(char *to, uint64_t value) {
    char digits[24];
    int n = 0;
    do digits[n++] = (char)('0' + value % 10); while (value /= 10);
    while (n) *to++ = digits[--n];
    return to;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    char text[320], *to = put(text, "{\"last_word\":\"");
    uintptr_t address = (uintptr_t)info->si_addr, best = 1u << 20;
    int nearest = -1, past = 0;
    if (number == SIGSEGV || number == SIGBUS)
        for (int i = 0; i < region_count; i++) {
            int after = address >= regions[i].end;
            uintptr_t distance = after ? address - regions[i].end : address < regions[i].begin ? regions[i].begin - address : 0;
            if (distance < best) best = distance, nearest = i, past = after;
        }
    if (nearest >= 0) {
        to = put(to, "memory fault ");
        to = put_number(to, best);
        to = put(to, past ? " bytes past the end of " : " bytes before the start of ");
        to = put(to, regions[nearest].name);
    } else {
        to = put(to, number == SIGFPE ? "arithmetic fault" : number == SIGILL ? "illegal instruction" : "memory fault near no buffer");
    }
    to = put(to, "\"}\n");
    if (last_word_fd >= 0 && write(last_word_fd, text, (size_t)(to - text)) < 0) _exit(128 + number);
    signal(number, SIG_DFL);
    raise(number);
}

/* The limit of a run ticks: signals that come while the process is stopped are merged into one, so that a
 * stopped process is not ended for time that it did not have. */
#define LIMIT_TICKS 20
static timer_t limit_timer;
static int limit_ready;
static _Atomic int limit_ticks;

static void on_tick(int number) {
    (void)number;
    if (atomic_fetch_add(&limit_ticks, 1) + 1 < LIMIT_TICKS) return;
    static const char text[] = "{\"last_word\":\"a run outlived its limit\",\"timed_out\":true}\n";
    if (last_word_fd >= 0 && write(last_word_fd, text, sizeof text - 1) < 0) _exit(124);
    kill(getpid(), SIGKILL);
}

static void limit_begin(int64_t ns) {
    if (!limit_ready || ns <= 0) return;
    int64_t tick = ns / LIMIT_TICKS + 1;
    struct itimerspec each = {{tick / 1000000000, tick % 1000000000}, {tick / 1000000000, tick % 1000000000}};
    atomic_store(&limit_ticks, 0);
    timer_settime(limit_timer, 0, &each, NULL);
}

static void limit_end(void) {
    static const struct itimerspec never;
    if (limit_ready) timer_settime(limit_timer, 0, &never, NULL);
}

void cake_run_limited(struct cake_batch *batch, int64_t limit_ns) {
    limit_begin(limit_ns);
    cake_run(batch);
    limit_end();
}

void cake_watch_faults(int fd) {
    last_word_fd = fd;
    struct sigaction tick;
    memset(&tick, 0, sizeof tick);
    tick.sa_handler = on_tick;
    tick.sa_flags = SA_RESTART;
    sigaction(SIGVTALRM, &tick, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    limit_ready = !timer_create(CLOCK_MONOTONIC, &event, &limit_timer);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (int i = 0; i < 4; i++) sigaction(numbers[i], &action, NULL);
}

/* Hashes of what a kernel must leave alone: two equal readings mean that nobody changed it. */
static uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 1099511628211u; }

uint64_t cake_handlers(void) {
    uint64_t hash = 1469598103934665603u;
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        if (sigaction(number, NULL, &action)) continue;
        hash = mix(mix(hash, (uint64_t)(uintptr_t)action.sa_sigaction), (uint64_t)(uint32_t)action.sa_flags);
    }
    return hash;
}

uint64_t cake_environment(void) {
    extern char **environ;
    uint64_t hash = 1469598103934665603u;
    for (char **entry = environ; entry && *entry; entry++)
        for (const char *c = *entry; *c; c++) hash = mix(hash, (uint64_t)(unsigned char)*c);
    return hash;
}

/* Bytes in use by malloc; grows from call to call where a kernel does not free. */
uint64_t cake_heap_bytes(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}
