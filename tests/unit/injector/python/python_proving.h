/* SPDX-License-Identifier: MIT */
/* The proof over fake interpreters (python_fake.h) in this process. */
#pragma once

#include "python_fake.h"

/* Set-up and teardown of a group of tests. */
int python_proving_open(void **state);
int python_proving_close(void **state);

void python_proving(struct python_proof *p, const struct python_fake *f);
/* For reading objects of the fake. budget: for all that is read. */
struct python_view python_proving_view(const struct python_fake *f, struct budget *budget);
/* Runs the test for each release. */
void python_proving_each(void (*test)(struct python_fake *f));
