/* SPDX-License-Identifier: MIT */
/* Between loader_guests.c and its library. */
#ifndef MEMATTACH_TESTS_LOADER_GUEST_H
#define MEMATTACH_TESTS_LOADER_GUEST_H

/* Has the program's worker thread call it, and waits. */
void guest_call(void (*function)(void *), void *argument);

#endif
