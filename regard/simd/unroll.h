#pragma once
// REGARD_UNROLL before a loop over a tile of registers: the loop must vanish, or the tile would live in
// memory.

#if defined(__clang__)
#define REGARD_UNROLL _Pragma("clang loop unroll(full)")
#else
#define REGARD_UNROLL _Pragma("GCC unroll 16")
#endif
