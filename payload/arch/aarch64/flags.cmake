# Options of the compiler that belong to the machine. payload_machine: for all of the payload (atomic operations without a
# call of libgcc); payload_integers: for all C files but exponential.c.
set(payload_machine -mno-outline-atomics -mbranch-protection=none)
set(payload_integers -mgeneral-regs-only)
set(payload_doubles)
set(payload_hooks)
