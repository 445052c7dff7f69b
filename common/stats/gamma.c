/* SPDX-License-Identifier: MIT */
#include "stats/gamma.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#define TEMME_MIN_SHAPE 500.0
#define CLOSE 1e-4 /* of what need not be known better */

/* m - log(1 + m) without cancellation near 0: with r = m / (2 + m), log(1 + m) = 2 atanh(r). */
static double log1p_deficit(double m)
{
	if (fabs(m) > 0.3)
		return m - log1p(m);
	double r = m / (2 + m);
	double rr = r * r;
	double sum = 0;
	double power = 1;

	for (int k = 3; k < 40; k += 2) {
		sum += power / k;
		power *= rr;
		if (power < 1e-18)
			break;
	}
	return r * (m - 2 * rr * sum);
}

/* log Gamma(a + 1) minus Stirling's formula, a >= 10. */
static double stirling_error(double a)
{
	double b = 1 / (a * a);

	return (1.0 / 12 - b * (1.0 / 360 - b * (1.0 / 1260 - b * (1.0 / 1680 - b / 1188)))) / a;
}

/* x^a e^-x / Gamma(a + 1) */
static double density(double a, double x)
{
	if (x <= 0)
		return 0;
	if (a < 10)
		return exp(a * log(x) - x - lgamma(a + 1));
	return exp(-a * log1p_deficit((x - a) / a) - stirling_error(a)) / sqrt(2 * M_PI * a);
}

static double series_p(double a, double x)
{
	double term = 1;
	double sum = 1;

	for (double n = a + 1; term > sum * DBL_EPSILON / 4; n++) {
		term *= x / n;
		sum += term;
	}
	return density(a, x) * sum;
}

/* Continued fraction by Lentz's method. */
static double fraction_q(double a, double x)
{
	double b = x + 1 - a;
	double c = 1 / DBL_MIN;
	double d = 1 / b;
	double h = d;

	for (int i = 1; i < 100000; i++) {
		double an = -i * (i - a);
		b += 2;
		d = an * d + b;
		if (fabs(d) < DBL_MIN)
			d = DBL_MIN;
		c = b + an / c;
		if (fabs(c) < DBL_MIN)
			c = DBL_MIN;
		d = 1 / d;
		double factor = d * c;
		h *= factor;
		if (fabs(factor - 1) < DBL_EPSILON)
			break;
	}
	return density(a, x) * a * h;
}

static double polynomial(const double *coefficients, int n, double x)
{
	double sum = 0;

	while (n-- > 0)
		sum = sum * x + coefficients[n];
	return sum;
}

/* The Taylor coefficients of Temme's c_k(eta), DLMF 8.12.7-8.12.12; DiDonato and Morris (1986) list them. */
static const double temme_c0[] = {
	-0.333333333333333333333,   0.0833333333333333333333,    -0.0148148148148148148148,
	0.00115740740740740740741,  0.000352733686067019400353,  -0.0001787551440329218107,
	0.39192631785224377817e-4,  -0.218544851067999216147e-5, -0.18540622107151599607e-5,
	0.829671134095308600502e-6, -0.176659527368260793044e-6, 0.670785354340149858037e-8,
	0.102618097842403080426e-7, -0.438203601845335318655e-8, 0.914769958223679023418e-9
};
static const double temme_c1[] = { -0.00185185185185185185185,  -0.00347222222222222222222, 0.00264550264550264550265,
	                           -0.000990226337448559670782, 0.000205761316872427983539, -0.40187757201646090535e-6,
	                           -0.18098550334489977837e-4,  0.764916091608111008464e-5, -0.161209008945634460038e-5,
	                           0.464712780280743434226e-8,  0.137863344691572095931e-6, -0.575254560351770496402e-7,
	                           0.119516285997781473243e-7 };
static const double temme_c2[] = { 0.00413359788359788359788,   -0.00268132716049382716049,  0.000771604938271604938272,
	                           0.200938786008230452675e-5,  -0.000107366532263651605215, 0.529234488291201254164e-4,
	                           -0.127606351886187277134e-4, 0.342357873409613807419e-7,  0.137219573090629332056e-5,
	                           -0.629899213838005502291e-6, 0.142806142060642417916e-6 };
static const double temme_c3[] = { 0.000649434156378600823045, 0.000229472093621399176955,  -0.000469189494395255712128,
	                           0.000267720632062838852962, -0.756180167188397641073e-4, -0.239650511386729665193e-6,
	                           0.110826541153473023615e-4 };

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Uniform asymptotic expansion around x = a; upper chooses Q, else P. */
static double temme(double a, double x, bool upper)
{
	double m = (x - a) / a;
	double half_square = log1p_deficit(m);
	double eta = copysign(sqrt(2 * half_square), m);
	double sum =
		polynomial(temme_c0, COUNT(temme_c0), eta) +
		(polynomial(temme_c1, COUNT(temme_c1), eta) +
	         (polynomial(temme_c2, COUNT(temme_c2), eta) + polynomial(temme_c3, COUNT(temme_c3), eta) / a) / a) /
			a;
	double rest = exp(-a * half_square) / sqrt(2 * M_PI * a) * sum;
	double z = eta * sqrt(a / 2);

	return upper ? 0.5 * erfc(z) + rest : 0.5 * erfc(-z) - rest;
}

static double clamp01(double p)
{
	return p < 0 ? 0 : p > 1 ? 1 : p;
}

static double tail(double a, double x, bool upper)
{
	if (!(a > 0) || !(x >= 0))
		return NAN;
	if (x == 0)
		return upper;
	if (isinf(x))
		return !upper;
	if (a > TEMME_MIN_SHAPE && fabs(x - a) < 0.3 * a)
		return clamp01(temme(a, x, upper));
	if (x < a + 1) {
		double p = clamp01(series_p(a, x));
		return upper ? 1 - p : p;
	}
	double q = clamp01(fraction_q(a, x));
	return upper ? q : 1 - q;
}

double gamma_p(double a, double x)
{
	return tail(a, x, false);
}

double gamma_q(double a, double x)
{
	return tail(a, x, true);
}

double stats_normal_quantile(double p)
{
	if (!(p > 0) || !(p < 1))
		return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;

	/* Abramowitz and Stegun 26.2.23 to start (4.5e-4), then Halley's method on erfc. */
	double side = p < 0.5 ? p : 1 - p;
	double t = sqrt(-2 * log(side));
	double x =
		t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

	for (int i = 0; i < 4; i++) {
		double u = (0.5 * erfc(x / M_SQRT2) - side) * sqrt(2 * M_PI) * exp(x * x / 2);
		x += u / (1 - x * u / 2);
	}
	return p < 0.5 ? -x : x;
}

/* Where the search begins: Wilson and Hilferty (1931), or the leading term of the series for a small result. */
static double first_guess(double a, double z, double p)
{
	double c = 1 / (9 * a);
	double root = 1 - c + z * sqrt(c);
	double x = root > 0 ? a * root * root * root : 0;

	if (x < 0.2 * (a + 1)) {
		double leading = exp((log(p) + lgamma(a + 1)) / a);
		if (leading < x || x <= 0)
			x = leading;
	}
	return x;
}

/* Solves tail(a, x, upper) = target by Halley's method, kept inside a bracket. */
static double inverse(double a, double target, bool upper)
{
	if (!(a > 0) || !(target >= 0) || !(target <= 1))
		return NAN;
	if (target == 0)
		return upper ? INFINITY : 0;
	if (target == 1)
		return upper ? 0 : INFINITY;

	double z = stats_normal_quantile(target);
	double x = first_guess(a, upper ? -z : z, upper ? 1 - target : target);
	double low = 0;
	double high = INFINITY;

	for (int i = 0; i < 200; i++) {
		double gap = tail(a, x, upper) - target;
		if (gap == 0)
			break;
		if (upper == (gap > 0))
			low = x;
		else
			high = x;
		double slope = density(a, x) * a / x; /* the density of the distribution at x */
		double step = upper ? -gap / slope : gap / slope;
		double curve = step * ((a - 1) / x - 1) / 2;
		if (fabs(curve) < 0.5)
			step /= 1 - curve;
		double next = x - step;
		/* The error after a step is of the order of its cube, in units of the deviation. What is left is the
		 * noise of the tail. */
		if (fabs(step) * sqrt(a + 1) <= 1e-6 * x)
			return next;
		if (!(next > low) || !(next < high) || !isfinite(next))
			next = isinf(high) ? 2 * x + 1 : low + (high - low) / 2;
		if (fabs(next - x) <= 2 * DBL_EPSILON * x || next < DBL_MIN)
			return next;
		x = next;
	}
	return x;
}

double gamma_p_inverse(double a, double p)
{
	return inverse(a, p, false);
}

double gamma_q_inverse(double a, double q)
{
	return inverse(a, q, true);
}

/* The series of P(a, x) without its density: 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..., as far as CLOSE needs it.
 */
static double rough_series(double a, double x)
{
	double term = 1;
	double sum = 1;

	for (double n = a + 1; term > sum * CLOSE * CLOSE; n++) {
		term *= x / n;
		sum += term;
	}
	return sum;
}

/*
 * In u = log(x) the difference of the logarithms, h(u) = log P(a, e^u) - log(slope) - u, is concave, with the
 * derivative a / series - 1. So Newton's method comes from the left and never steps over the place. It begins where P
 * is the first term of its series, x^a / Gamma(a + 1), which is more than P.
 */
double gamma_p_crosses(double a, double slope)
{
	double log_gamma = lgamma(a + 1);
	double u = (log(slope) + log_gamma) / (a - 1);

	if (!(a > 1) || !(slope > 0))
		return 0;
	for (int i = 0; i < 100; i++) {
		double x = exp(u);
		double series = rough_series(a, x);
		if (!(series < a) || !(x < a))
			return 0;
		double step = ((a - 1) * u - x - log_gamma + log(series) - log(slope)) / (a / series - 1);
		u -= step;
		if (fabs(step) < CLOSE)
			return exp(u);
	}
	return exp(u);
}
