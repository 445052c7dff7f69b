/* SPDX-License-Identifier: MIT */
/*
 * A program that embeds libpython, ends the interpreter and starts it again. It has a second thread, which outlives
 * each interpreter, as threads of libraries do: it enters the first one and is outside of Python when that ends.
 *
 *     PID n
 *     READY
 * With "late" it waits for a line then, and starts the first interpreter after that; with "idle" it waits for one
 * outside of Python, whose interpreter has started. Prints RESTS; waits for a line in Python; then each of ROUNDS
 * interpreters, the first one as well, has both threads make blocks that are never freed: the first thread 30000 +
 * round bytes, in Python; the other 40000 + round bytes before it has entered this interpreter, and 50000 + round bytes
 * in it. Prints MADE; waits for a line, ends the last interpreter, prints ENDED; waits for a line, and prints OK.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 3

/* As Python.h of 3.9 and later has them; the headers are not needed. */
typedef struct object PyObject;
typedef struct thread_state PyThreadState;
typedef struct {
	const char *name;
	PyObject *(*function)(PyObject *, PyObject *);
	int flags;
	const char *text;
} PyMethodDef;
#define METH_O 8
extern void Py_InitializeEx(int signals);
extern int Py_FinalizeEx(void);
extern int PyGILState_Ensure(void);
extern PyThreadState *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(PyThreadState *);
extern int PyRun_SimpleStringFlags(const char *, void *);
extern PyObject *PyImport_AddModule(const char *);
extern PyObject *PyCMethod_New(PyMethodDef *, PyObject *, PyObject *, PyObject *);
extern int PyObject_SetAttrString(PyObject *, const char *, PyObject *);
extern long PyLong_AsLong(PyObject *);
extern PyObject *PyLong_FromVoidPtr(void *);

static PyObject *take(PyObject *self, PyObject *size)
{
	(void)self;
	return PyLong_FromVoidPtr(malloc((size_t)PyLong_AsLong(size)));
}

static PyMethodDef take_method = { "take", take, METH_O, NULL };

static void run(const char *code)
{
	if (PyRun_SimpleStringFlags(code, NULL))
		abort();
}

static void handle(int size)
{
	char code[40];

	snprintf(code, sizeof code, "handle(%d)", size);
	run(code);
}

static void start(void)
{
	Py_InitializeEx(0);
	if (PyObject_SetAttrString(PyImport_AddModule("__main__"), "take",
	                           PyCMethod_New(&take_method, NULL, NULL, NULL)))
		abort();
	run("def make(size):\n    return take(size)\ndef handle(size):\n    return make(size)\n"
	    "def rest():\n    import sys\n    sys.stdin.readline()\n");
}

static sem_t told, done;
static void *volatile kept;

static void *other_thread(void *unused)
{
	(void)unused;
	for (int round = 0; round < ROUNDS; round++) {
		sem_wait(&told);
		kept = malloc((size_t)(40000 + round));
		PyGILState_Ensure();
		handle(50000 + round);
		PyEval_SaveThread();
		sem_post(&done);
	}
	return NULL;
}

static void wait_for_line(void)
{
	for (int c = getchar(); c != '\n' && c != EOF;)
		c = getchar();
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread;

	sem_init(&told, 0, 0);
	sem_init(&done, 0, 0);
	if (pthread_create(&thread, NULL, other_thread, NULL))
		abort();
	if (strcmp(how, "late") != 0)
		start();
	printf("PID %d\n", getpid());
	say("READY");
	if (strcmp(how, "late") == 0) {
		wait_for_line();
		start();
	} else if (strcmp(how, "idle") == 0) {
		PyThreadState *state = PyEval_SaveThread();
		wait_for_line();
		PyEval_RestoreThread(state);
	}
	say("RESTS");
	run("rest()");
	for (int round = 0; round < ROUNDS; round++) {
		if (round && Py_FinalizeEx())
			abort();
		if (round)
			start();
		handle(30000 + round);
		PyThreadState *state = PyEval_SaveThread();
		sem_post(&told);
		sem_wait(&done);
		PyEval_RestoreThread(state);
	}
	say("MADE");
	wait_for_line();
	if (Py_FinalizeEx())
		abort();
	say("ENDED");
	wait_for_line();
	printf("OK again rounds=%d\n", ROUNDS);
	return 0;
}
