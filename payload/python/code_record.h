/* SPDX-License-Identifier: MIT */
/* Code objects of Python, as the dump stores them: dump_code, copied once for each while a frame holds it. */
#pragma once

#include "python/code_object.h"

/* The reference of its record, which is stored now if it is new. False: no room. */
bool code_record_store(const struct code_object *code, const struct python_layout *layout, uint32_t *reference);
