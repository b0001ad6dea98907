// Threads of a team of blocks as fibres: one runs until it waits, then the lot draws the next.
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "machine.h"

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emu {

Thread *self;
std::vector<Thread> threads;
std::vector<Block> blocks;
const Launch *launch;
int agents;
uint32_t team, first_team;

namespace {
std::vector<Thread *> ready;
std::vector<uint32_t> clocks;
void *scheduler;
uint32_t seed = 1;
uint32_t newest = 1;  // epoch that no thread of an earlier team reached
}  // namespace

void set_seed(uint32_t given) { seed = given * 2654435761u + 1; }

uint32_t roll(uint32_t below) {
  seed ^= seed << 13;
  seed ^= seed >> 17;
  seed ^= seed << 5;
  return seed % below;
}

#ifdef __x86_64__
extern "C" void emu_switch(void **save, void *load);
asm(R"(
.text
.globl emu_switch
.type emu_switch, @function
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emu_switch, .-emu_switch
)");

static void begin();

static void prepare(Thread &thread) {
  auto top = reinterpret_cast<uintptr_t>(thread.stack + STACK_BYTES) & ~uintptr_t(63);
  auto *words = reinterpret_cast<void **>(top) - 8;  // six registers, the address that `ret` takes, one for alignment
  std::fill(words, words + 8, nullptr);
  words[6] = reinterpret_cast<void *>(&begin);
  thread.context = words;
}
#else
static void emu_switch(void **save, void *load) {
  static std::deque<ucontext_t> kept;
  if (*save == nullptr) {
    kept.emplace_back();
    *save = &kept.back();
  }
  swapcontext(static_cast<ucontext_t *>(*save), static_cast<ucontext_t *>(load));
}

static void begin();

static void prepare(Thread &thread) {
  static std::map<Thread *, ucontext_t> contexts;
  ucontext_t &context = contexts[&thread];
  getcontext(&context);
  context.uc_stack.ss_sp = thread.stack;
  context.uc_stack.ss_size = STACK_BYTES;
  context.uc_link = nullptr;
  makecontext(&context, begin, 0);
  thread.context = &context;
}
#endif

static void begin() {
  launch->entry(const_cast<void **>(launch->arguments.data()));
  self->done = true;
  thread_returned();
  emu_switch(&self->context, scheduler);
}

void sleep(const char *awaits, uintptr_t place) {
  self->waiting = true;
  self->awaits = awaits;
  self->place = place;
  emu_switch(&self->context, scheduler);
}

void wake(std::vector<Thread *> &asleep) {
  for (Thread *thread : asleep) {
    thread->waiting = false;
    ready.push_back(thread);
  }
  asleep.clear();
}

void yield() {
  if (roll(4)) return;
  ready.push_back(self);
  emu_switch(&self->context, scheduler);
}

static void make_threads(size_t per_block) {
  static std::vector<char *> stacks;
  threads.resize(per_block * blocks.size());
  agents = static_cast<int>(threads.size()) + MOST_MBARRIERS;
  clocks.assign(threads.size() * agents, newest);
  while (stacks.size() < threads.size()) {
    void *made = mmap(nullptr, STACK_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(made, 4096, PROT_NONE);  // below the stack: an overflow is no silent write
    stacks.push_back(static_cast<char *>(made) + 4096);
  }
  for (size_t i = 0; i < threads.size(); i++) {
    Thread &thread = threads[i];
    unsigned number = i % per_block;
    thread = Thread{};
    thread.id = static_cast<int>(i);
    thread.number = static_cast<int>(number);
    thread.block = &blocks[i / per_block];
    thread.stack = stacks[i];
    thread.index = {number % launch->block.x, number / launch->block.x % launch->block.y,
                    number / (launch->block.x * launch->block.y)};
    thread.clock = &clocks[i * agents];
    thread.clock[i]++;
    prepare(thread);
  }
}

static std::string awaited(const Thread &thread) {
  const Mbarrier *barrier = thread.barrier;
  if (!barrier) return thread.awaits;
  std::string text = "mbarrier " + barrier->name + ", whose phase " + std::to_string(barrier->phase) + " lacks ";
  if (barrier->missing)
    text += std::to_string(barrier->missing) + " of " + std::to_string(barrier->count) + " arrivals";
  if (barrier->bytes) text += (barrier->missing ? " and " : "") + std::to_string(barrier->bytes) + " bytes";
  return text;
}

static void report_deadlock() {
  std::map<std::string, int> waiting;
  for (const Thread &thread : threads)
    if (thread.waiting) waiting[awaited(thread) + " " + at(thread.place)]++;
  std::string text;
  for (const auto &[what, count] : waiting)
    text += (text.empty() ? "" : "; ") + std::to_string(count) + (count == 1 ? " thread" : " threads") + " at " + what;
  fault("deadlock", "%s", text.c_str());
}

void run_team() {
  size_t per_block = size_t(launch->block.x) * launch->block.y * launch->block.z;
  for (Block &block : blocks) block.live = static_cast<int>(per_block);
  make_threads(per_block);
  clear_shared();
  start_barriers();
  ready.clear();
  for (Thread &thread : threads) ready.push_back(&thread);
  size_t running = threads.size();
  while (running) {
    if (!flights.empty() && (ready.empty() || roll(8) == 0)) land_flight();
    if (ready.empty()) {
      if (flights.empty()) report_deadlock();
      continue;
    }
    std::swap(ready[roll(static_cast<uint32_t>(ready.size()))], ready.back());
    self = ready.back();
    ready.pop_back();
    emu_switch(&scheduler, self->context);
    running -= self->done;
  }
  for (const Thread &thread : threads) newest = std::max(newest, thread.clock[thread.id] + 1);
  for (const Mbarrier *barrier : mbarriers) newest = std::max(newest, barrier->epoch + 1);
  end_barriers();
}

// --- clocks: one vector a thread, one place in it for each thread and mbarrier -------------------------------

void join(const std::vector<Thread *> &met) {
  Clock all(met.front()->clock, met.front()->clock + agents);
  for (size_t i = 1; i < met.size(); i++) {
    const uint32_t *other = met[i]->clock;
    for (int j = 0; j < agents; j++) all[j] = std::max(all[j], other[j]);
  }
  for (Thread *thread : met) {
    std::copy(all.begin(), all.end(), thread->clock);
    thread->clock[thread->id]++;
  }
}

void take(uint32_t *clock, const Clock &other) {
  for (size_t j = 0; j < other.size(); j++) clock[j] = std::max(clock[j], other[j]);
}

void release() { self->clock[self->id]++; }

}  // namespace emu
