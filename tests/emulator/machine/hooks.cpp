// What g++ -fsanitize=thread,bounds,alignment calls at each access: not its own libraries, but the emulator answers.
#include "machine.h"

using emu::Access;

#define TOUCH(name, bytes, kind) \
  extern "C" void __tsan_##name(void *p) { emu::access(reinterpret_cast<uintptr_t>(p), bytes, kind, HERE); }

TOUCH(read1, 1, Access::READ)
TOUCH(read2, 2, Access::READ)
TOUCH(read4, 4, Access::READ)
TOUCH(read8, 8, Access::READ)
TOUCH(read16, 16, Access::READ)
TOUCH(unaligned_read2, 2, Access::READ)
TOUCH(unaligned_read4, 4, Access::READ)
TOUCH(unaligned_read8, 8, Access::READ)
TOUCH(unaligned_read16, 16, Access::READ)
TOUCH(write1, 1, Access::WRITE)
TOUCH(write2, 2, Access::WRITE)
TOUCH(write4, 4, Access::WRITE)
TOUCH(write8, 8, Access::WRITE)
TOUCH(write16, 16, Access::WRITE)
TOUCH(unaligned_write2, 2, Access::WRITE)
TOUCH(unaligned_write4, 4, Access::WRITE)
TOUCH(unaligned_write8, 8, Access::WRITE)
TOUCH(unaligned_write16, 16, Access::WRITE)

extern "C" void __tsan_read_range(void *p, size_t bytes) {
  emu::access(reinterpret_cast<uintptr_t>(p), bytes, Access::READ, HERE);
}
extern "C" void __tsan_write_range(void *p, size_t bytes) {
  emu::access(reinterpret_cast<uintptr_t>(p), bytes, Access::WRITE, HERE);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}

extern "C" void __ubsan_handle_out_of_bounds(void *, uintptr_t index) {
  emu::fault("out of bounds", "thread %d takes element %ld of an array that has fewer %s", emu::self->id,
             static_cast<long>(index), emu::at(HERE).c_str());
}

extern "C" void __ubsan_handle_type_mismatch_v1(void *data, uintptr_t address) {
  struct Mismatch {
    struct { const char *file; uint32_t line, column; } place;
    void *type;
    unsigned char log_alignment, kind;
  };
  int bytes = 1 << static_cast<Mismatch *>(data)->log_alignment;
  emu::fault("misaligned", "thread %d uses %s as aligned to %d bytes %s", emu::self->id, emu::where(address).c_str(),
             bytes, emu::at(HERE).c_str());
}
