/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/gamma.h"

static void assert_close(double got, double want, double tolerance)
{
	if (fabs(got - want) > tolerance * fabs(want))
		fail_msg("%.17g is not %.17g", got, want);
}

/* The chi-square table of the textbooks with more digits (40-digit arithmetic). */
static const struct {
	double df, p, x;
} chi2_table[] = {
	{ 1, 0.005, 3.9270422220515904e-5 }, { 1, 0.025, 0.00098206911717525602 }, { 1, 0.05, 0.0039321400000195232 },
	{ 1, 0.5, 0.45493642311957275 },     { 1, 0.95, 3.8414588206941245 },      { 1, 0.975, 5.0238861873148874 },
	{ 1, 0.995, 7.8794385766224158 },    { 2, 0.005, 0.010025083647088564 },   { 2, 0.025, 0.050635615968579754 },
	{ 2, 0.05, 0.10258658877510107 },    { 2, 0.5, 1.3862943611198906 },       { 2, 0.95, 5.9914645471079802 },
	{ 2, 0.975, 7.3777589082278708 },    { 2, 0.995, 10.596634733096072 },     { 3, 0.005, 0.071721774586491978 },
	{ 3, 0.025, 0.21579528262389788 },   { 3, 0.05, 0.35184631774927141 },     { 3, 0.5, 2.3659738843753383 },
	{ 3, 0.95, 7.814727903251178 },      { 3, 0.975, 9.3484036044961458 },     { 3, 0.995, 12.83815646659865 },
	{ 4.5, 0.005, 0.30129983429899278 }, { 4.5, 0.025, 0.64938459921131737 },  { 4.5, 0.05, 0.92014265103240156 },
	{ 4.5, 0.5, 3.8537537676844727 },    { 4.5, 0.95, 10.288195667851383 },    { 4.5, 0.975, 11.998539402698973 },
	{ 4.5, 0.995, 15.818345669393896 },  { 5, 0.005, 0.41174190383249884 },    { 5, 0.025, 0.83121161348666244 },
	{ 5, 0.05, 1.1454762260617693 },     { 5, 0.5, 4.3514601910955273 },       { 5, 0.95, 11.070497693516352 },
	{ 5, 0.975, 12.832501994030026 },    { 5, 0.995, 16.749602343639042 },     { 10, 0.005, 2.155856481304639 },
	{ 10, 0.025, 3.2469727802368411 },   { 10, 0.05, 3.9402991361190601 },     { 10, 0.5, 9.3418177655919674 },
	{ 10, 0.95, 18.307038053275144 },    { 10, 0.975, 20.483177350807394 },    { 10, 0.995, 25.188179571971169 },
	{ 30, 0.005, 13.786719859502713 },   { 30, 0.025, 16.790772265566625 },    { 30, 0.05, 18.492660981953468 },
	{ 30, 0.5, 29.336031516661586 },     { 30, 0.95, 43.772971825742184 },     { 30, 0.975, 46.979242243671153 },
	{ 30, 0.995, 53.671961930240588 },   { 50, 0.005, 27.990748866373331 },    { 50, 0.025, 32.357363695658653 },
	{ 50, 0.05, 34.764251683501747 },    { 50, 0.5, 49.334936733976835 },      { 50, 0.95, 67.504806549541195 },
	{ 50, 0.975, 71.42019518750641 },    { 50, 0.995, 79.489978466828899 },    { 100, 0.005, 67.327563305479181 },
	{ 100, 0.025, 74.221927474923726 },  { 100, 0.05, 77.92946516501726 },     { 100, 0.5, 99.334129235988456 },
	{ 100, 0.95, 124.34211340400407 },   { 100, 0.975, 129.56119718583659 },   { 100, 0.995, 140.16948944231363 },
	{ 1000, 0.005, 888.56352318146832 }, { 1000, 0.025, 914.25715379925894 },  { 1000, 0.05, 927.59436302097905 },
	{ 1000, 0.5, 999.33341240338097 },   { 1000, 0.95, 1074.679448803441 },    { 1000, 0.975, 1089.5309127749135 },
	{ 1000, 0.995, 1118.9480663231916 }, { 2000, 0.005, 1840.8480923267183 },  { 2000, 0.025, 1877.9460368153904 },
	{ 2000, 0.05, 1897.1196987673023 },  { 2000, 0.5, 1999.3333728539304 },    { 2000, 0.95, 2105.1542361646411 },
	{ 2000, 0.975, 2125.8423024497755 }, { 2000, 0.995, 2166.6643003915585 },
};

/* P and Q from 40-digit arithmetic. */
static const struct {
	double a, x, p, q;
} gamma_table[] = {
	{ 0.01, 0.01, 0.9603474235215092, 0.039652576478490802 },
	{ 0.01, 0.21, 0.98817787682517703, 0.011822123174822973 },
	{ 0.01, 0.41, 0.99311470915718583, 0.0068852908428141733 },
	{ 0.3, 0.3, 0.72695734371036619, 0.27304265628963381 },
	{ 0.3, 1.395445, 0.95154118094905327, 0.048458819050946727 },
	{ 0.3, 2.49089, 0.98802228656688542, 0.01197771343311458 },
	{ 2.5, 0.918861, 0.12888739292773185, 0.87111260707226815 },
	{ 2.5, 2.5, 0.58411981300449208, 0.41588018699550792 },
	{ 2.5, 5.662278, 0.95468852052975826, 0.045311479470241741 },
	{ 2.5, 8.824555, 0.99658010673961926, 0.0034198932603807373 },
	{ 9.5, 0.253379, 1.5206486391462146e-12, 0.99999999999847935 },
	{ 9.5, 6.417793, 0.15311962467037674, 0.84688037532962326 },
	{ 9.5, 9.5, 0.54316387440803762, 0.45683612559196238 },
	{ 9.5, 15.664414, 0.96285930262687037, 0.037140697373129634 },
	{ 9.5, 21.828828, 0.99894700967088199, 0.0010529903291180114 },
	{ 10.5, 0.778889, 2.9990177997186833e-9, 0.9999999970009822 },
	{ 10.5, 7.25963, 0.15372077064703294, 0.84627922935296706 },
	{ 10.5, 10.5, 0.54105579110717818, 0.45894420889282182 },
	{ 10.5, 16.980741, 0.96341522982040058, 0.03658477017959942 },
	{ 10.5, 23.461481, 0.9990382017191334, 0.00096179828086659723 },
	{ 75, 49.019238, 0.00033731273144332575, 0.99966268726855667 },
	{ 75, 66.339746, 0.15806924488531954, 0.84193075511468046 },
	{ 75, 75.0, 0.51535639903964299, 0.48464360096035701 },
	{ 75, 92.320508, 0.97139838694483623, 0.028601613055163772 },
	{ 75, 109.641016, 0.99980568465534949, 0.00019431534465050605 },
	{ 499, 431.985076, 0.00087160357148040044, 0.9991283964285196 },
	{ 499, 476.661692, 0.15857177307882032, 0.84142822692117968 },
	{ 499, 499.0, 0.50595310238391385, 0.49404689761608615 },
	{ 499, 543.676616, 0.97488862330374161, 0.025111376696258386 },
	{ 499, 588.353232, 0.99992711362125186, 7.2886378748144557e-5 },
	{ 501, 433.850912, 0.00087245452875295581, 0.99912754547124704 },
	{ 501, 478.616971, 0.15857211606633727, 0.84142788393366273 },
	{ 501, 501.0, 0.50594120779988092, 0.49405879220011908 },
	{ 501, 545.766059, 0.97489322772372837, 0.02510677227627163 },
	{ 501, 590.532117, 0.99992722061145911, 7.2779388540887168e-5 },
	{ 1500, 1383.8105, 0.0010613824565241598, 0.99893861754347584 },
	{ 1500, 1461.270167, 0.15862786794207788, 0.84137213205792212 },
	{ 1500, 1500.0, 0.50343356116034865, 0.49656643883965135 },
	{ 1500, 1577.459667, 0.97587415266861648, 0.024125847331383521 },
	{ 1500, 1654.919334, 0.99994746442933531, 5.2535570664689804e-5 },
};

static void test_chi2_quantile_matches_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof chi2_table / sizeof chi2_table[0]; i++) {
		assert_close(stats_chi2_quantile(chi2_table[i].df, chi2_table[i].p), chi2_table[i].x, 1e-9);
		assert_close(stats_chi2_upper_quantile(chi2_table[i].df, 1 - chi2_table[i].p), chi2_table[i].x, 1e-9);
	}
}

static void test_gamma_matches_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof gamma_table / sizeof gamma_table[0]; i++) {
		assert_close(gamma_p(gamma_table[i].a, gamma_table[i].x), gamma_table[i].p, 1e-11);
		assert_close(gamma_q(gamma_table[i].a, gamma_table[i].x), gamma_table[i].q, 1e-11);
	}
}

/* P(1, x) = 1 - e^-x; for an integer a, Q(a, x) is the Poisson probability of fewer than a events. */
static void test_gamma_closed_forms(void **state)
{
	(void)state;
	for (double x = 0.01; x < 60; x *= 1.7) {
		assert_close(gamma_p(1, x), -expm1(-x), 1e-13);
		assert_close(gamma_q(1, x), exp(-x), 1e-13);
		double term = exp(-x);
		double sum = 0;
		for (int k = 0; k < 20; k++) {
			sum += term;
			term *= x / (k + 1);
		}
		assert_close(gamma_q(20, x), sum, 1e-12);
		assert_close(gamma_p(0.5, x), erf(sqrt(x)), 1e-12);
	}
	assert_close(gamma_q_inverse(1, 0.05), -log(0.05), 1e-14);
	assert_close(gamma_p_inverse(1, 1e-12), -log1p(-1e-12), 1e-12);
}

static void test_gamma_inverse_returns(void **state)
{
	static const double shapes[] = { 0.05, 0.5, 1, 1.7, 4, 30, 499.5, 500.5, 1e4, 1e7, 1e12 };
	static const double tails[] = { 1e-6, 5e-4, 0.005, 0.025, 0.05, 0.3, 0.5, 0.9, 0.975, 0.9995 };

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		for (size_t k = 0; k < sizeof tails / sizeof tails[0]; k++) {
			double tolerance = shapes[i] > 1e6 ? 1e-7 : 1e-9;
			assert_close(gamma_p(shapes[i], gamma_p_inverse(shapes[i], tails[k])), tails[k], tolerance);
			assert_close(gamma_q(shapes[i], gamma_q_inverse(shapes[i], tails[k])), tails[k], tolerance);
		}
	}
}

static void test_gamma_edges(void **state)
{
	(void)state;
	assert_true(gamma_p(2, 0) == 0 && gamma_q(2, 0) == 1);
	assert_true(gamma_p(2, INFINITY) == 1 && gamma_q(2, INFINITY) == 0);
	assert_true(gamma_p_inverse(2, 0) == 0 && isinf(gamma_p_inverse(2, 1)));
	assert_true(isinf(gamma_q_inverse(2, 0)) && gamma_q_inverse(2, 1) == 0);
	assert_true(isnan(gamma_p(-1, 1)) && isnan(gamma_p(1, -1)) && isnan(gamma_p_inverse(1, 2)));
	assert_true(isnan(gamma_p(NAN, 1)) && isnan(gamma_q_inverse(1, NAN)));
}

static void test_normal_quantile_matches_table(void **state)
{
	(void)state;
	assert_close(stats_normal_quantile(0.975), 1.959963984540054235524595, 1e-14);
	assert_close(stats_normal_quantile(0.95), 1.644853626951472714863848, 1e-14);
	assert_close(stats_normal_quantile(0.005), -2.575829303548900760966, 1e-14);
	assert_close(stats_normal_quantile(1e-9), -5.997807015007686871989, 1e-13);
	assert_true(fabs(stats_normal_quantile(0.5)) < 1e-15);
}

/* Where a line crosses P from below; none crosses where P begins as steeply as a line. */
static void test_gamma_p_crosses_a_line(void **state)
{
	static const double shapes[] = { 1.001, 1.5, 2, 3.7, 10, 100, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (double slope = 1e-3 / shapes[i]; slope > 1e-14; slope /= 10) {
			double x = gamma_p_crosses(shapes[i], slope);
			assert_true(x >= 0 && x < shapes[i]);
			if (x > 1e-100) {
				assert_true(fabs(gamma_p(shapes[i], x) / (slope * x) - 1) < 1e-2);
				assert_true(gamma_p(shapes[i], 0.9 * x) < slope * 0.9 * x);
			}
		}
	assert_true(gamma_p_crosses(100, 1e-5) > 50);
	assert_true(gamma_p_crosses(1, 1e-3) == 0 && gamma_p_crosses(0.5, 1e-3) == 0 && gamma_p_crosses(2, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chi2_quantile_matches_table),
		cmocka_unit_test(test_gamma_matches_table),
		cmocka_unit_test(test_gamma_closed_forms),
		cmocka_unit_test(test_gamma_inverse_returns),
		cmocka_unit_test(test_gamma_edges),
		cmocka_unit_test(test_normal_quantile_matches_table),
		cmocka_unit_test(test_gamma_p_crosses_a_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
