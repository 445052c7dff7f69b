/* SPDX-License-Identifier: MIT */
/*
 * What memattach has used is the machine's again. To look at modules and to compile unwind rules takes many times the
 * memory that a session goes on with, and a machine may have hundreds of sessions (injector/system/). Without this
 * malloc keeps most of it: once large blocks were freed, glibc takes as large ones from its heap, and gives that back
 * only where twice as much is free at its end.
 */
#pragma once

/* Before anything is allocated: large blocks are mapped, and unmapped when they are freed. */
void own_memory_keep_small(void);
/* After much was freed. */
void own_memory_give_back(void);
