/* SPDX-License-Identifier: MIT */
/* Between loader_guests.c and its library. */
#pragma once

/* Has the program's worker thread call it, and waits. */
void guest_call(void (*function)(void *), void *argument);
