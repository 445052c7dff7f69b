/* SPDX-License-Identifier: MIT */
#include "python_proving.h"

#include <unistd.h>

#include "fixture.h"

#define LOOKS 2

static struct view view; /* of this process */

int python_proving_open(void **state)
{
	(void)state;
	view_open(&view, getpid(), false);
	return 0;
}

int python_proving_close(void **state)
{
	(void)state;
	view_close(&view);
	return 0;
}

void python_proving(struct python_proof *p, const struct python_fake *f)
{
	struct python_runtime r = {
		.module = modules_main(&view.modules),
		.address = (uint64_t)(uintptr_t)f->runtime,
		.version = { .minor = f->release->minor,
		             .patch = 4,
		             .release = 'f',
		             .flags_known = true,
		             .describes_itself = f->release->self[0].value },
	};

	python_proof_make(p, &r, &view.modules, &view.maps, &view.tm, LOOKS);
}

struct python_view python_proving_view(const struct python_fake *f, struct budget *budget)
{
	return (struct python_view){
		.modules = &view.modules,
		.memory = target_memory_charged(&view.tm, budget),
		.release = f->release,
		.runtime = (uint64_t)(uintptr_t)f->runtime,
	};
}

void python_proving_each(void (*test)(struct python_fake *f))
{
	uint32_t count;
	const struct python_release *list = python_release_list(&count);

	assert_int_equal(count, 6);
	for (uint32_t i = 0; i < count; i++) {
		struct python_fake f;

		python_fake_make(&f, &list[i]);
		test(&f);
	}
}
