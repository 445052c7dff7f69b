/* SPDX-License-Identifier: MIT */
/*
 * The gamma distribution: regularized incomplete gamma functions and quantiles, accurate to about 1e-13 relative
 * for shapes from 0.01 to 1e15. Probabilities near 0 and 1 keep their relative accuracy through the
 * complement. Sources: DLMF 8.7.1 (series), 8.9.2 (continued fraction), Temme (1979) and DLMF 8.12
 * (uniform expansion for a large shape), Loader (2000) for the density without cancellation.
 */
#pragma once

/* P(a, x) and Q(a, x) = 1 - P(a, x), for a > 0, x >= 0. NAN outside. */
double gamma_p(double a, double x);
double gamma_q(double a, double x);

/* The x with P(a, x) = p, and with Q(a, x) = q; p and q in [0, 1]. NAN outside. */
double gamma_p_inverse(double a, double p);
double gamma_q_inverse(double a, double q);

/* The least x above 0 with P(a, x) = slope * x, to 1e-4 of x; 0 where there is none below a, as with a <= 1. For shapes
 * of some thousands at most: its time grows with their square root. */
double gamma_p_crosses(double a, double slope);

/* Quantile of the standard normal distribution, p in (0, 1). */
double stats_normal_quantile(double p);

/* Quantile of the chi-square distribution with df degrees of freedom (any df > 0): lower tail p, or upper tail q. */
static inline double stats_chi2_quantile(double df, double p)
{
	return 2 * gamma_p_inverse(df / 2, p);
}

static inline double stats_chi2_upper_quantile(double df, double q)
{
	return 2 * gamma_q_inverse(df / 2, q);
}
