/* SPDX-License-Identifier: MIT */
/* Names of images, from files as engines write them, and from files that nobody should believe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_find.h"
#include "choose/container_image.h"

#define ID "3f2a1b00c4d5e6f7089a1b2c3d4e5f60718293a4b5c6d7e8f90011223344aabb"
#define DOCKER "var/lib/docker/containers/" ID "/config.v2.json"
#define CONTAINERD "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json"
#define PODMAN "var/lib/containers/storage/overlay-containers/containers.json"

static char root[] = "/tmp/memattach-images-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	strcpy(root + sizeof root - 7, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	char command[600], whole[400];

	snprintf(whole, sizeof whole, "%s/%s", root, path);
	snprintf(command, sizeof command, "mkdir -p \"$(dirname %s)\"", whole);
	assert_int_equal(system(command), 0);
	FILE *f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(whole, mode), 0);
}

static void expect(const char *expected)
{
	char name[256];

	assert_int_equal(container_image_below(root, ID, name, sizeof name), expected[0] != 0);
	assert_string_equal(name, expected);
}

static void test_below_reads_docker(void **state)
{
	(void)state;
	write_file(DOCKER,
	           "{\"StreamConfig\":{},\"State\":{\"Running\":true,\"Pid\":4},\"ID\":\"" ID "\","
	           "\"Args\":[\"a\",{\"Config\":1}],\"Config\":{\"Hostname\":\"x\",\"Env\":[\"Image=\\\"}\"],\"Image\":"
	           "\"redis:7.2\"},"
	           "\"Image\":\"sha256:aa\"}",
	           0600);
	expect("redis:7.2");
}

static void test_below_reads_containerd(void **state)
{
	(void)state;
	write_file(CONTAINERD,
	           "{ \"ociVersion\" : \"1.1.0\", \"process\": {\"args\": [\"io.kubernetes.cri.image-name\"]},\n"
	           " \"annotations\": { \"io.kubernetes.cri.container-name\": \"web\",\n"
	           "  \"io.kubernetes.cri.image-name\": \"registry.k8s.io/pause:3.9\" } }",
	           0644);
	expect("registry.k8s.io/pause:3.9");
}

static void test_below_reads_podman(void **state)
{
	(void)state;
	write_file(PODMAN,
	           "[{\"id\":\""
	           "00"
	           "\",\"metadata\":\"{\\\"image-name\\\":\\\"other\\\"}\"},"
	           "{\"id\":\"" ID "\",\"names\":[\"a\"],\"image\":\"ff\",\"layer\":\"ee\","
	           "\"metadata\":\"{\\\"image-name\\\":\\\"docker.io/library/"
	           "nginx:latest\\\",\\u0022name\\\":\\\"web\\\"}\"}]",
	           0600);
	expect("docker.io/library/nginx:latest");
}

/* Files that others can write, that are none, that are cut off or lie about what they are. */
static void test_below_believes_nobody(void **state)
{
	static const char *const texts[] = { "",
		                             "{",
		                             "{\"Config\"",
		                             "{\"Config\":",
		                             "{\"Config\":{\"Image\":\"x",
		                             "[]",
		                             "null",
		                             "{\"Config\":{\"Image\":7}}",
		                             "{\"Config\":[\"Image\"]}",
		                             "{\"Config\":{\"Image\":\"a b\"}}",
		                             "{\"Config\":{\"Image\":\"\\u001b[2J\"}}",
		                             "{\"Config\":{\"Image\":\"\\\"}}",
		                             "{\"Config\":{\"Image\":\"<b>\"}}",
		                             "[[[[[[[[[[[[",
		                             "{\"a\":}",
		                             "{,}",
		                             "{\"Config\":{\"Image\":\"\"}}" };
	char whole[400];

	(void)state;
	expect("");
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		write_file(DOCKER, texts[i], 0600);
		write_file(PODMAN, texts[i], 0600);
		expect("");
	}
	write_file(DOCKER, "{\"Config\":{\"Image\":\"x\"}}", 0600);
	expect("x");
	write_file(DOCKER, "{\"Config\":{\"Image\":\"x\"}}", 0666);
	expect("");
	snprintf(whole, sizeof whole, "%s/" DOCKER, root);
	assert_int_equal(unlink(whole), 0);
	assert_int_equal(mkfifo(whole, 0600), 0);
	expect("");
	assert_int_equal(unlink(whole), 0);
	assert_int_equal(symlink("/dev/zero", whole), 0);
	expect("");
}

/* Each beginning of a text ends within its memory: the sanitizers look. */
static void test_json_value_of_any_beginning(void **state)
{
	static const char text[] = "{\"a\":[1,\"\\u0041\\n\",{\"b\":null}],\"c\":\"d\"}";
	struct json_value value, element;
	char out[8];

	(void)state;
	for (size_t n = 0; n <= strlen(text); n++) {
		char *copy = malloc(n + 1);
		assert_non_null(copy);
		memcpy(copy, text, n);
		copy = realloc(copy, n ? n : 1);
		assert_non_null(copy);
		bool found = json_value_member(json_value_of(copy, n), "c", &value) &&
		             json_value_text(value, out, sizeof out);
		assert_int_equal(found, n >= strlen(text) - 1);
		if (json_value_member(json_value_of(copy, n), "a", &value))
			while (json_value_next(&value, &element))
				(void)json_value_text(element, out, sizeof out);
		free(copy);
	}
	assert_true(json_value_member(json_value_of(text, strlen(text)), "a", &value));
	assert_true(json_value_next(&value, &element) && json_value_next(&value, &element));
	assert_true(json_value_text(element, out, sizeof out));
	assert_string_equal(out, "A\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_below_reads_docker, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_below_reads_containerd, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_below_reads_podman, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_below_believes_nobody, make_root, remove_root),
		cmocka_unit_test(test_json_value_of_any_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
