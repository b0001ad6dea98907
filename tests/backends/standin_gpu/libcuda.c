/* A stand-in for NVIDIA's driver: the calls that `driver.py` makes, on host memory. No kernel runs.
 *
 * STANDIN_GPU names a folder. `devices` there has a line a device: UUID CAPABILITY SMS BYTES NAME (a MIG instance is
 * one with "MIG" in its name); `version` the CUDA version that the driver serves. While a file `fails` is there, the
 * call that it names fails with the code that it names, in every process, "*" being every call; `counted` in place of
 * it: the N-th such call of a process ("CALL CODE N"). `generation` counts how often the devices went: a context that was
 * made before fails for good.
 * A "binary" is the text of its source: FAULT in it is the error that its launch leaves behind (1: it never ends;
 * codes of a lost device are written to `fails`; from 1000 on: none), MICROSECONDS what a launch takes on the device's clock.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, INVALID = 1, NO_DEVICE = 100, INVALID_DEVICE = 101, NOT_FOUND = 500, NOT_READY = 600, UNKNOWN = 999 };
enum { MOST = 16, HANGS = 1 };

struct device { unsigned char uuid[16]; char text[64], name[96]; int capability, sms; size_t bytes; };
struct module { char *source; int fault; double us; };
struct event { double us; };
struct graph { double us; int fault; };

static struct device devices[MOST];
static int count;
static double now_us, captured_us;
static int capturing, captured_fault, broken, hangs;
static size_t taken;
static int born = -1; /* the generation of devices in which the context was made */

static FILE *open_file(const char *name, const char *mode) {
    char path[4096];
    const char *folder = getenv("STANDIN_GPU");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
    return fopen(path, mode);
}

static int generation(void) {
    int number = 0;
    FILE *file = open_file("generation", "r");
    if (!file) return 0;
    if (fscanf(file, "%d", &number) != 1) number = 0;
    fclose(file);
    return number;
}

static int fails(const char *call) {
    static struct { char name[64]; int seen; } calls[64];
    char wanted[64];
    int code, nth = 0, found = 0;
    for (int pass = 0; pass < 2 && !found; pass++) {
        FILE *file = open_file(pass ? "counted" : "fails", "r");
        if (!file) continue;
        if (fscanf(file, "%63s %d %d", wanted, &code, &nth) >= 2 && (wanted[0] == '*' || !strcmp(wanted, call))) {
            int at = 0;
            while (calls[at].name[0] && strcmp(calls[at].name, call)) at++;
            snprintf(calls[at].name, sizeof calls[at].name, "%s", call);
            if (!pass || ++calls[at].seen == nth) found = code;
        }
        fclose(file);
    }
    if (!found && born >= 0 && generation() != born) found = UNKNOWN; /* the device went meanwhile */
    return found ? found : broken;
}
#define CALL do { int code_ = fails(__func__); if (code_) return code_; } while (0)

static void read_devices(void) {
    struct device all[MOST];
    int known = 0;
    FILE *file = open_file("devices", "r");
    while (file && known < MOST && fscanf(file, "%63s %d %d %zu %95[^\n]", all[known].text, &all[known].capability,
                                          &all[known].sms, &all[known].bytes, all[known].name) == 5) {
        const char *at = all[known].text + 4;
        for (int byte = 0; byte < 16; byte++) {
            unsigned value;
            while (*at == '-') at++;
            sscanf(at, "%2x", &value);
            all[known].uuid[byte] = (unsigned char)value;
            at += 2;
        }
        known++;
    }
    if (file) fclose(file);
    const char *wanted = getenv("CUDA_VISIBLE_DEVICES");
    count = 0;
    if (!wanted) {
        memcpy(devices, all, sizeof all);
        count = known;
        return;
    }
    char copy[1024], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", wanted);
    while ((word = strsep(&rest, ",")) && *word) { /* the first that is none ends the list */
        char *end;
        long index = strtol(word, &end, 10);
        int found = -1;
        if (!*end) found = index >= 0 && index < known ? (int)index : -1;
        else for (int at = 0; at < known && found < 0; at++)
            if (strlen(word) > 4 && !strncmp(all[at].text, word, strlen(word))) found = at;
        if (found < 0) return;
        devices[count++] = all[found];
    }
}

/* --- devices ------------------------------------------------------------------------------------------------ */

int cuInit(unsigned flags) { (void)flags; CALL; read_devices(); return count ? 0 : NO_DEVICE; }
int cuDriverGetVersion(int *out) {
    FILE *file = open_file("version", "r");
    *out = 13000;
    if (file) { if (fscanf(file, "%d", out) != 1) *out = 0; fclose(file); }
    return 0;
}
int cuGetErrorName(int code, const char **out) {
    static const struct { int code; const char *name; } names[] = {
        {INVALID, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"}, {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
        {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"}, {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}, {999, "CUDA_ERROR_UNKNOWN"}};
    for (unsigned at = 0; at < sizeof names / sizeof *names; at++)
        if (names[at].code == code) { *out = names[at].name; return 0; }
    *out = NULL;
    return INVALID;
}
int cuGetErrorString(int code, const char **out) { (void)code; *out = "said by the stand-in"; return 0; }
int cuDeviceGetCount(int *out) { CALL; *out = count; return 0; }
int cuDeviceGet(int *out, int ordinal) { CALL; if (ordinal >= count) return INVALID_DEVICE; *out = ordinal; return 0; }
int cuDeviceGetUuid_v2(unsigned char *out, int device) { CALL; memcpy(out, devices[device].uuid, 16); return 0; }
int cuDeviceGetName(char *out, int size, int device) { CALL; snprintf(out, size, "%s", devices[device].name); return 0; }
int cuDeviceGetAttribute(int *out, int attribute, int device) {
    CALL;
    int major = devices[device].capability / 10, hopper = major >= 9;
    switch (attribute) {
    case 1: case 2: case 3: *out = 1024; break;
    case 4: *out = 64; break;
    case 5: *out = 2147483647; break;
    case 6: case 7: *out = 65535; break;
    case 10: *out = 32; break;
    case 13: *out = 1980000; break;
    case 16: *out = devices[device].sms; break;
    case 36: *out = 3201000; break;
    case 37: *out = 6144; break;
    case 38: *out = 50 << 20; break;
    case 39: *out = 2048; break;
    case 75: *out = major; break;
    case 76: *out = devices[device].capability % 10; break;
    case 81: *out = hopper ? 233472 : 167936; break;
    case 82: *out = 65536; break;
    case 97: *out = hopper ? 232448 : 166912; break;
    case 106: *out = 32; break;
    default: return INVALID;
    }
    return 0;
}
int cuDevicePrimaryCtxRetain(void **out, int device) { CALL; *out = &devices[device]; born = generation(); return 0; }
static struct device *current = devices;
int cuCtxSetCurrent(void *context) { CALL; current = context; return 0; }

/* --- memory ------------------------------------------------------------------------------------------------- */

int cuMemGetInfo_v2(size_t *left, size_t *total) { CALL; *total = current->bytes; *left = *total - taken; return 0; }
int cuMemAlloc_v2(uint64_t *out, size_t size) {
    CALL;
    if (taken + size > current->bytes) return OUT_OF_MEMORY;
    size_t *base = NULL;
    if (posix_memalign((void **)&base, 256, size + 256)) return OUT_OF_MEMORY;
    *base = size;
    taken += size;
    *out = (uint64_t)base + 256;
    return 0;
}
int cuMemFree_v2(uint64_t address) {
    CALL;
    size_t *base = (size_t *)(address - 256);
    taken -= *base;
    free(base);
    return 0;
}
int cuMemHostAlloc(void **out, size_t size, unsigned flags) { (void)flags; CALL; *out = calloc(1, size); return 0; }
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, void *stream) {
    (void)stream; CALL;
    if (!capturing) memset((void *)to, value, size);
    return 0;
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t words, void *stream) {
    (void)stream; CALL;
    for (size_t at = 0; at < words && !capturing; at++) ((unsigned *)to)[at] = value;
    return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    (void)stream; CALL; memmove((void *)to, (void *)from, size); now_us += size / 2e6; return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
    (void)stream; CALL; memmove((void *)to, from, size); return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    (void)stream; CALL; memmove(to, (void *)from, size); return 0;
}

/* --- modules, streams, events ---------------------------------------------------------------------------------- */

static double number_behind(const char *text, const char *word, double otherwise) {
    const char *at = strstr(text, word);
    return at ? atof(at + strlen(word)) : otherwise;
}
int cuModuleLoadData(void **out, const char *image) {
    CALL;
    struct module *made = calloc(1, sizeof *made);
    made->source = strdup(image);
    made->fault = (int)number_behind(image, "FAULT ", 0);
    made->us = number_behind(image, "MICROSECONDS ", 50);
    *out = made;
    return 0;
}
int cuModuleUnload(void *module) { CALL; free(((struct module *)module)->source); free(module); return 0; }
int cuModuleGetFunction(void **out, struct module *module, const char *name) {
    CALL;
    if (!strstr(module->source, name)) return NOT_FOUND;
    *out = module;
    return 0;
}
int cuFuncGetAttribute(int *out, int attribute, void *function) {
    (void)function; CALL;
    *out = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0;
    return 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) { (void)function; (void)attribute; (void)value; CALL; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int threads, size_t bytes) {
    (void)function; (void)threads; (void)bytes; CALL; *out = 2; return 0;
}
int cuCtxGetStreamPriorityRange(int *least, int *most) { CALL; *least = 0; *most = -5; return 0; }
int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) {
    (void)flags; (void)priority; CALL; *out = malloc(1); return 0;
}
static int waited(void) {
    while (hangs) { struct timespec { long s, ns; } nap = {1, 0}; extern int nanosleep(); nanosleep(&nap, NULL); }
    return broken;
}
int cuStreamSynchronize(void *stream) { (void)stream; CALL; return waited(); }
int cuEventCreate(void **out, unsigned flags) { (void)flags; CALL; *out = calloc(1, sizeof(struct event)); return 0; }
int cuEventRecord(struct event *event, void *stream) { (void)stream; CALL; event->us = now_us; return 0; }
int cuEventQuery(struct event *event) { (void)event; CALL; return hangs ? NOT_READY : 0; }
int cuEventElapsedTime(float *out, struct event *first, struct event *second) {
    CALL; *out = (float)((second->us - first->us) / 1e3); return 0;
}

/* --- launches -------------------------------------------------------------------------------------------------- */

static void run(double us, int fault) {
    now_us += us;
    if (fault == HANGS) hangs = 1;
    else if (fault && fault < 300) { /* the device is gone, for every process */
        int number = generation() + 1;
        FILE *file = open_file("generation", "w");
        if (file) { fprintf(file, "%d", number); fclose(file); }
        file = open_file("fails", "w");
        if (file) { fprintf(file, "* %d\n", fault); fclose(file); }
    } else if (fault && fault < 1000) broken = fault;
}
int cuLaunchKernelEx(const void *config, struct module *function, void **arguments, void **extra) {
    (void)config; (void)arguments; (void)extra; CALL;
    if (!capturing) run(function->us, function->fault);
    else { captured_us += function->us; captured_fault = captured_fault ? captured_fault : function->fault; }
    return 0;
}
int cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)stream; (void)mode; CALL; capturing = 1; captured_us = 0; captured_fault = 0; return 0;
}
int cuStreamEndCapture(void *stream, void **out) {
    (void)stream; CALL;
    struct graph *made = malloc(sizeof *made);
    *made = (struct graph){captured_us, captured_fault};
    capturing = 0;
    *out = made;
    return 0;
}
int cuGraphInstantiateWithFlags(void **out, struct graph *graph, unsigned long long flags) {
    (void)flags; CALL;
    struct graph *made = malloc(sizeof *made);
    *made = *graph;
    *out = made;
    return 0;
}
int cuGraphDestroy(void *graph) { CALL; free(graph); return 0; }
int cuGraphUpload(void *graph, void *stream) { (void)graph; (void)stream; CALL; return 0; }
int cuGraphLaunch(struct graph *graph, void *stream) { (void)stream; CALL; run(graph->us, graph->fault); return 0; }
int cuGraphExecDestroy(void *graph) { CALL; free(graph); return 0; }
