/* The evaluator's C side, continued: guard pages, the fault handler's last word, the limit of a run, and hashes of
 * what a kernel must leave alone. Compiled together with `runtime.c`.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_REGIONS 128
#define ALTERNATE_BYTES (64u << 10)

struct cake_batch;
void cake_run(struct cake_batch *batch); /* runtime.c */

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

/* A stack of its own for this thread's fault handler: the thread's may be what overflowed. */
void cake_handle_faults_here(void) {
    stack_t stack = {.ss_size = ALTERNATE_BYTES};
    stack.ss_sp = malloc(ALTERNATE_BYTES);
    if (stack.ss_sp) sigaltstack(&stack, NULL);
}

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

void cake_limit_begin(int64_t ns) {
    if (!limit_ready || ns <= 0) return;
    int64_t tick = ns / LIMIT_TICKS + 1;
    struct itimerspec each = {{tick / 1000000000, tick % 1000000000}, {tick / 1000000000, tick % 1000000000}};
    atomic_store(&limit_ticks, 0);
    timer_settime(limit_timer, 0, &each, NULL);
}

void cake_limit_end(void) {
    static const struct itimerspec never;
    if (limit_ready) timer_settime(limit_timer, 0, &never, NULL);
}

void cake_run_limited(struct cake_batch *batch, int64_t limit_ns) {
    cake_limit_begin(limit_ns);
    cake_run(batch);
    cake_limit_end();
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
