// Reads buffers and launches from standard input, runs them, writes outputs or the first fault to standard output.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "machine.h"

namespace emu {

namespace {
uintptr_t library, library_end;  // the kernel's shared object
void (*(*entry_named)(const char *name))(void **);

int find_library(dl_phdr_info *found, size_t, void *name) {
  if (std::strcmp(found->dlpi_name, static_cast<const char *>(name)) != 0) return 0;
  library = found->dlpi_addr;
  for (int i = 0; i < found->dlpi_phnum; i++) {
    const auto &part = found->dlpi_phdr[i];
    if (part.p_type == PT_LOAD) library_end = std::max<uintptr_t>(library_end, library + part.p_vaddr + part.p_memsz);
  }
  return 1;
}
}  // namespace

static void load(char *path) {
  void *loaded = dlopen(path, RTLD_NOW);
  if (!loaded) fault("launch", "%s", dlerror());
  entry_named = reinterpret_cast<decltype(entry_named)>(dlsym(loaded, "emu_entry"));
  dl_iterate_phdr(find_library, path);
}

[[noreturn]] void fault(const char *kind, const char *format, ...) {
  char text[4096];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  std::string report = std::string("fault\n") + kind + "\n" + text + "\n";
  for (size_t done = 0; done < report.size();) {
    ssize_t more = write(1, report.data() + done, report.size() - done);
    if (more <= 0) break;
    done += more;
  }
  _exit(0);
}

const char *kept(const std::string &text) {
  static std::set<std::string> all;
  return all.insert(text).first->c_str();
}

std::string at(uintptr_t place) {
  char text[32];
  // Cells keep 32 bits of a place: of its distance from the library's start that is enough.
  snprintf(text, sizeof text, "{%x}", static_cast<uint32_t>(place) - static_cast<uint32_t>(library));
  return text;
}

bool in_kernel(uintptr_t address) { return address >= library && address < library_end; }

static void on_signal(int number, siginfo_t *found, void *context) {
  uintptr_t place = 0;
#ifdef __x86_64__
  place = static_cast<uintptr_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]) + 1;
#else
  (void)context;
#endif
  fault("crash", "signal %d at %s %s", number, where(reinterpret_cast<uintptr_t>(found->si_addr)).c_str(),
        at(place).c_str());
}

// Alone between unreadable pages, and aligned to `align` and no better.
static uintptr_t place_buffer(size_t bytes, size_t align) {
  size_t room = (bytes + align + 4095) / 4096 * 4096;
  auto *made = static_cast<char *>(mmap(nullptr, room + 2 * BESIDE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(made + BESIDE, room, PROT_READ | PROT_WRITE);
  std::memset(made + BESIDE, 0xff, room);
  return reinterpret_cast<uintptr_t>(made) + BESIDE + align;
}

static void run_launch() {
  first_team = team + 1;
  const Index &grid = launch->grid, &cluster = launch->cluster;
  Index count{grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
  blocks.assign(size_t(cluster.x) * cluster.y * cluster.z, Block{});
  allocate_shared();
  size_t teams = size_t(count.x) * count.y * count.z;
  std::vector<size_t> order(teams);
  for (size_t i = 0; i < teams; i++) order[i] = i;
  for (size_t i = teams; i > 1; i--) std::swap(order[i - 1], order[roll(static_cast<uint32_t>(i))]);
  for (size_t number : order) {
    team++;
    auto x = static_cast<unsigned>(number % count.x), y = static_cast<unsigned>(number / count.x % count.y);
    auto z = static_cast<unsigned>(number / (size_t(count.x) * count.y));
    for (unsigned i = 0; i < blocks.size(); i++)
      blocks[i].index = {x * cluster.x + i % cluster.x, y * cluster.y + i / cluster.x % cluster.y,
                         z * cluster.z + i / (cluster.x * cluster.y)};
    run_team();
  }
}

static long number() {
  long value;
  if (scanf("%ld", &value) != 1) fault("launch", "a plan ends early");
  return value;
}

static std::string word() {
  char text[256];
  if (scanf("%255s", text) != 1) fault("launch", "a plan ends early");
  return text;
}

static Index three() {
  Index found;
  for (unsigned *each : {&found.x, &found.y, &found.z}) *each = static_cast<unsigned>(number());
  return found;
}

static void read_buffer() {
  Region region;
  region.name = word();
  region.bytes = static_cast<size_t>(number());
  region.element = static_cast<size_t>(number());
  region.start = place_buffer(region.bytes, static_cast<size_t>(number()));
  State state = number() ? FULL : EMPTY;
  region.writable = number();
  region.cells.resize(((region.bytes - 1) >> shift) + 1);
  for (Cell &cell : region.cells) cell.state = state;
  buffers.push_back(std::move(region));
}

static Launch read_launch() {
  Launch made;
  std::string name = word();
  made.entry = entry_named(name.c_str());
  if (!made.entry) fault("launch", "the source has no kernel %s", name.c_str());
  made.grid = three();
  made.block = three();
  made.cluster = three();
  made.smem_bytes = static_cast<size_t>(number());
  return made;
}

static TensorMap read_map() {
  TensorMap map{};
  map.base = reinterpret_cast<char *>(buffers[number()].start);
  map.rank = static_cast<int>(number());
  map.element = static_cast<int>(number());
  map.swizzle = static_cast<int>(number());
  for (long *numbers : {map.dims, map.strides, map.box})
    for (int axis = 0; axis < map.rank; axis++) numbers[axis] = number();
  return map;
}

static int work(char *path) {
  load(path);
  std::deque<Launch> launches;
  std::deque<int> sizes;
  std::deque<TensorMap> maps;
  for (std::string said = word(); said != "data"; said = word()) {
    if (said == "seed") {
      set_seed(static_cast<uint32_t>(number()));
    } else if (said == "cell") {
      shift = static_cast<int>(number());
    } else if (said == "buffer") {
      read_buffer();
    } else if (said == "launch") {
      launches.push_back(read_launch());
    } else if (said == "pointer") {
      launches.back().arguments.push_back(&buffers[number()].start);
    } else if (said == "int") {
      sizes.push_back(static_cast<int>(number()));
      launches.back().arguments.push_back(&sizes.back());
    } else if (said == "map") {
      maps.push_back(read_map());
      launches.back().arguments.push_back(&maps.back());
    } else {
      fault("launch", "a plan says %s", said.c_str());
    }
  }
  getchar();  // the end of that line
  for (const Region &region : buffers) {
    auto *start = reinterpret_cast<char *>(region.start);
    if (region.cells[0].state == FULL && fread(start, 1, region.bytes, stdin) != region.bytes)
      fault("launch", "%s is shorter than the plan says", region.name.c_str());
  }
  for (const Launch &one : launches) {
    launch = &one;
    run_launch();
  }
  puts("done");
  for (const Region &region : buffers)
    if (region.writable) fwrite(reinterpret_cast<const char *>(region.start), 1, region.bytes, stdout);
  return 0;
}

}  // namespace emu

int main(int, char **arguments) {
  static char spare[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = spare;
  alternate.ss_size = sizeof spare;
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_sigaction = emu::on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
  return emu::work(arguments[1]);
}
