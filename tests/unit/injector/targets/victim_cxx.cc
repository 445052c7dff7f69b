/* SPDX-License-Identifier: MIT */
// Uses operator new in several forms, then waits for the end of its input.
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

struct alignas(64) wide {
	char bytes[64];
};

int main()
{
	std::vector<std::string *> strings;
	char byte;

	for (int i = 0; i < 10; i++)
		strings.push_back(new std::string(100, 'x'));
	int *volatile numbers = new int[10];
	wide *volatile w = new wide;
	int *volatile quiet = new (std::nothrow) int;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	while (read(STDIN_FILENO, &byte, 1) == 1)
		;
	delete[] numbers;
	delete w;
	delete quiet;
	for (std::string *s : strings)
		delete s;
	return 0;
}
