/* SPDX-License-Identifier: MIT */
#include "fixture.h"

int main(void)
{
	return 0;
}
