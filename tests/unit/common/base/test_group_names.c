/* SPDX-License-Identifier: MIT */
/* What paths of cgroups say, in the forms that systemd, engines and kubelets give them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/group_names.h"

#define ID "3f2a1b00c4d5e6f7089a1b2c3d4e5f60718293a4b5c6d7e8f90011223344aabb"

static const struct {
	const char *path, *unit, *container, *pod;
} paths[] = {
	{ "", "", "", "" },
	{ "/", "", "", "" },
	{ "/system.slice/nginx.service", "nginx.service", "", "" },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", "", "" },
	{ "/user.slice/user-1000.slice/session-4.scope", "session-4.scope", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", "web.service", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service", "user@1000.service", "", "" },
	{ "/system.slice/nginx.service/workers/w.service", "nginx.service", "", "" }, /* the unit's own affair */
	{ "/system.slice/docker-" ID ".scope", "docker-" ID ".scope", ID, "" },
	{ "/docker/" ID, "", ID, "" },
	{ "/machine.slice/libpod-" ID ".scope/container", "libpod-" ID ".scope", ID, "" },
	{ "/kubepods/burstable/pod12345678-9abc-def0-1234-56789abcdef0/" ID, "", ID,
	  "12345678-9abc-def0-1234-56789abcdef0" },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod12345678_9abc_def0_1234_56789abcdef0.slice/"
	  "cri-containerd-" ID ".scope",
	  "cri-containerd-" ID ".scope", ID, "12345678-9abc-def0-1234-56789abcdef0" },
	{ "/docker/" ID "a", "", "", "" }, /* longer */
	{ "/docker/x" ID, "", "", "" },
};

static void test_of_tells_unit_container_and_pod(void **state)
{
	(void)state;
	struct group_names names;

	for (unsigned i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		group_names_of(paths[i].path, &names);
		assert_string_equal(names.unit, paths[i].unit);
		assert_string_equal(names.container, paths[i].container);
		assert_string_equal(names.pod, paths[i].pod);
	}
}

/* Any text may be in a dump. */
static void test_of_stays_inside_its_buffers(void **state)
{
	(void)state;
	struct group_names names;
	char long_path[2000];

	for (unsigned i = 0; i < sizeof long_path - 9; i++)
		long_path[i] = 'a';
	__builtin_memcpy(long_path + sizeof long_path - 9, ".service", 9);
	group_names_of(long_path, &names);
	assert_string_equal(names.container, "");
	assert_int_equal(names.unit[GROUP_NAME - 2], 'a');
	assert_int_equal(names.unit[GROUP_NAME - 1], '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_tells_unit_container_and_pod),
		cmocka_unit_test(test_of_stays_inside_its_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
