/* SPDX-License-Identifier: MIT */
/* Stands in for libFuzzer: gives each file of the directories and files in argv to the target once. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *f = fopen(path, "re");
	struct stat st;

	if (!f || fstat(fileno(f), &st)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	uint8_t *data = malloc((size_t)st.st_size + 1);
	if (!data || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		abort();
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
	fclose(f);
	return 1;
}

static int run_path(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	if (!dir)
		return run_file(path);
	for (struct dirent *d; (d = readdir(dir));) {
		char below[4096];
		if (d->d_name[0] == '.')
			continue;
		snprintf(below, sizeof below, "%s/%s", path, d->d_name);
		count += run_path(below);
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++)
		count += run_path(argv[i]);
	printf("%d inputs\n", count);
	return count ? 0 : 1;
}
