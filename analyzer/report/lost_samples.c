/* SPDX-License-Identifier: MIT */
#include "report/lost_samples.h"

#include <math.h>

void lost_samples_weigh(const struct dump_stack *stack, const struct free_tally *frees, double seen, double part,
                        double lost, struct estimate_sum sums[2])
{
	double bytes = (double)stack->taken_bytes + stack->excess_bytes, blocks = (double)stack->taken_count;
	double known = frees->live.value + frees->replaced + frees->seen.value;
	double value = fmax(0, bytes - known) * part;
	double weight = 1 + stack->excess_count / blocks;

	sums[0] = (struct estimate_sum){ .value = value,
		                         .variance = bytes > 0 ? stack->variance_bytes * value / bytes : 0,
		                         .seen = fmin(value, fmax(0, (double)stack->taken_bytes - seen) * part),
		                         .samples = (uint64_t)lost };
	/* Of numbers, as the others of the stack. */
	sums[1] = (struct estimate_sum){ .value = lost * weight,
		                         .next = weight,
		                         .variance = lost * stack->variance_count / blocks,
		                         .seen = lost,
		                         .samples = (uint64_t)lost };
}
