/* SPDX-License-Identifier: MIT */
/* C++ and Rust names as people write them. */
#pragma once

/* A name that would be longer stays mangled. */
#define DEMANGLED_MAX_BYTES 65536u

/* The demangled name, or a copy of the name; NULL if out of memory. To be freed. */
char *demangled_name(const char *name);
