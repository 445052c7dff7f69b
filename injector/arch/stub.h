/* SPDX-License-Identifier: MIT */
/* The stub of the architecture that is built for. */
#if defined(__x86_64__)
#include "arch/x86_64/stub.h"
#else
#error "memattach has no stub for this architecture yet"
#endif
