/* SPDX-License-Identifier: MIT */
/*
 * The agent and native methods of JavaWalks: before a native method calls malloc, the JVM says what its stack is at
 * that moment. In the file that is the agent's option a line for each such walk: address and size of the block, which
 * stays, then the frames, innermost first, as "method:line".
 */
#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 126
#define TEXT 60000

static jvmtiEnv *jvmti;
static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int on, begun, done, limit;
static _Thread_local unsigned state;

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *path, void *reserved)
{
	jvmtiCapabilities wanted = { .can_get_line_numbers = 1 };

	(void)reserved;
	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) || (*jvmti)->AddCapabilities(jvmti, &wanted))
		return JNI_ERR;
	out = fopen(path, "we");
	return out ? JNI_OK : JNI_ERR;
}

static int line_of(jmethodID method, jlocation at)
{
	jvmtiLineNumberEntry *lines = NULL;
	jint count = 0, found = 0;
	jlocation best = -1;

	if (at < 0 || (*jvmti)->GetLineNumberTable(jvmti, method, &count, &lines))
		return 0;
	for (jint i = 0; i < count; i++)
		if (lines[i].start_location <= at && lines[i].start_location > best) {
			best = lines[i].start_location;
			found = lines[i].line_number;
		}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)lines);
	return found;
}

/* "Ljava/lang/String;" is java.lang.String; what tells hidden classes apart follows a dot there, and a slash here. */
static void class_name(char *signature)
{
	for (char *c = signature; *c; c++)
		*c = *c == '/' ? '.' : *c == '.' ? '/' : *c;
	signature[strlen(signature) - 1] = '\0';
}

static size_t frame_text(JNIEnv *env, const jvmtiFrameInfo *frame, char *text, size_t room)
{
	char *method = NULL, *signature = NULL;
	jclass holder = NULL;
	size_t used = 0;

	if ((*jvmti)->GetMethodName(jvmti, frame->method, &method, NULL, NULL) ||
	    (*jvmti)->GetMethodDeclaringClass(jvmti, frame->method, &holder) ||
	    (*jvmti)->GetClassSignature(jvmti, holder, &signature, NULL))
		abort();
	class_name(signature);
	used = (size_t)snprintf(text, room, "\t%s.%s:%d", signature + 1, method,
	                        line_of(frame->method, frame->location));
	(*jvmti)->Deallocate(jvmti, (unsigned char *)method);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
	(*env)->DeleteLocalRef(env, holder);
	if (used >= room)
		abort();
	return used;
}

static void *stack_text(JNIEnv *env, char *text)
{
	jvmtiFrameInfo frames[FRAMES];
	jint count = 0;
	size_t used = 0;

	if ((*jvmti)->GetStackTrace(jvmti, NULL, 0, FRAMES, frames, &count))
		abort();
	for (jint i = 0; i < count; i++)
		used += frame_text(env, &frames[i], text + used, TEXT - used);
	return text;
}

/* Some walks of many calls, so that time passes between; false: not this one. */
static int is_chosen(void)
{
	if (!atomic_load_explicit(&on, memory_order_relaxed))
		return 0;
	if (!state)
		state = (unsigned)(size_t)&state | 1;
	state = state * 1664525u + 1013904223u;
	return (state >> 16) % 6 == 0 && atomic_fetch_add(&begun, 1) < atomic_load(&limit);
}

static void walk(JNIEnv *env, jbyteArray critical)
{
	static atomic_uint next;
	char text[TEXT];
	void *block, *bytes = NULL;
	size_t size = 32 + atomic_fetch_add(&next, 1) % 4000;

	stack_text(env, text);
	if (critical)
		bytes = (*env)->GetPrimitiveArrayCritical(env, critical, NULL);
	block = malloc(size);
	if (bytes)
		(*env)->ReleasePrimitiveArrayCritical(env, critical, bytes, JNI_ABORT);
	pthread_mutex_lock(&lock);
	fprintf(out, "%p %zu%s\n", block, size, text);
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&done, 1);
}

JNIEXPORT void JNICALL Java_JavaWalks_ask(JNIEnv *env, jclass class)
{
	(void)class;
	if (is_chosen())
		walk(env, NULL);
}

JNIEXPORT jint JNICALL Java_JavaWalks_held(JNIEnv *env, jobject self, jbyteArray bytes)
{
	(void)self;
	if (is_chosen())
		walk(env, bytes);
	return 1;
}

/* More arguments than there are registers: they are at other places of the stack in compiled code and in the
 * interpreter. */
JNIEXPORT jdouble JNICALL Java_JavaWalks_many(JNIEnv *env, jclass class, jint a, jdouble b, jlong c, jobject d,
                                              jfloat e, jlong f, jlong g, jdouble h, jint i, jobject j, jlong k)
{
	(void)class, (void)d, (void)j;
	if (is_chosen())
		walk(env, NULL);
	return a + b + (jdouble)c + (jdouble)e + (jdouble)f + (jdouble)g + h + i + (jdouble)k;
}

/* Calls back into Java. */
JNIEXPORT void JNICALL Java_JavaWalks_back(JNIEnv *env, jclass class, jobject runnable)
{
	jclass type = (*env)->GetObjectClass(env, runnable);
	jmethodID run = (*env)->GetMethodID(env, type, "run", "()V");

	(void)class;
	(*env)->CallVoidMethod(env, runnable, run);
	(*env)->DeleteLocalRef(env, type);
}

JNIEXPORT void JNICALL Java_JavaWalks_begin(JNIEnv *env, jclass class, jint count)
{
	(void)env, (void)class;
	atomic_store(&limit, count);
	atomic_store(&on, 1);
}

JNIEXPORT jint JNICALL Java_JavaWalks_count(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	return atomic_load(&done);
}

JNIEXPORT void JNICALL Java_JavaWalks_finish(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	atomic_store(&on, 0);
	pthread_mutex_lock(&lock);
	fflush(out);
	pthread_mutex_unlock(&lock);
}
