# Options of the compiler that belong to the machine. payload_machine: for all of the payload; payload_doubles: for
# exponential.c; payload_integers: for all other C files, which use no vector register; payload_hooks: for hooks.S.
set(payload_machine -fcf-protection=none)
set(payload_integers -mgeneral-regs-only)
set(payload_doubles -msse2 -mno-avx -mfpmath=sse)
# Skylake and its descendants do not cache decoded branches that touch a 32-byte boundary.
set(payload_hooks $<IF:$<C_COMPILER_ID:GNU>,-Wa$<COMMA>,>-mbranches-within-32B-boundaries)
