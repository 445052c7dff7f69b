/* SPDX-License-Identifier: MIT */
/* The library of JavaAmounts: takes memory by malloc, and touches it. */
#include <jni.h>
#include <stdlib.h>
#include <string.h>

JNIEXPORT jlong JNICALL Java_JavaAmounts_take(JNIEnv *env, jclass class, jlong bytes)
{
	void *block = malloc((size_t)bytes);

	(void)env, (void)class;
	return block ? (jlong)memset(block, 1, (size_t)bytes) : 0;
}
