/* SPDX-License-Identifier: MIT */
/* What the rows of a census are. */
#pragma once

enum census_by {
	CENSUS_BY_ALL, /* what belongs together */
	CENSUS_BY_REGION,
	CENSUS_BY_SIZE,
	CENSUS_BY_TYPE,
	CENSUS_BY_HOLDER
};
