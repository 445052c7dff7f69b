/* SPDX-License-Identifier: MIT */
#include "host/budget.h"

void budget_start(struct budget *b, uint64_t memory_bytes, uint64_t work)
{
	*b = (struct budget){
		.memory = memory_bytes, .limit = memory_bytes, .work = work, .children_ns = BUDGET_CHILDREN_NS
	};
}

int budget_check(const struct budget *b, struct err *e)
{
	if (!b || !b->refusal.code)
		return 0;
	*e = b->refusal;
	return -e->code;
}

int budget_fits(struct budget *b, uint64_t bytes, struct err *e)
{
	if (b && !b->refusal.code && bytes > b->memory)
		(void)err_set(&b->refusal, E2BIG,
		              "its modules promise more than %llu MB of tables; nothing was changed",
		              (unsigned long long)(b->limit >> 20));
	return budget_check(b, e);
}

int budget_take(struct budget *b, uint64_t bytes, struct err *e)
{
	int rc = budget_fits(b, bytes, e);

	if (b && rc == 0)
		b->memory -= bytes;
	return rc;
}

int budget_work(struct budget *b, uint64_t units, struct err *e)
{
	if (b && !b->refusal.code && units > b->work)
		(void)err_set(&b->refusal, E2BIG,
		              "its modules promise more tables than can be read in a few seconds; nothing was changed");
	int rc = budget_check(b, e);
	if (b && rc == 0)
		b->work -= units;
	return rc;
}
