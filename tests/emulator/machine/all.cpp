// The emulator's machine in one piece: that compiles in half the time.
#include "asynchronous.cpp"
#include "barriers.cpp"
#include "fibres.cpp"
#include "hooks.cpp"
#include "main.cpp"
#include "shadow.cpp"
#include "tma.cpp"
