/* SPDX-License-Identifier: MIT */
/*
 * A program that embeds libpython as web servers do: code runs in a subinterpreter, on the first thread and on one that
 * knows no other interpreter; none calls another.
 *
 *     PID n
 *     READY
 * waits for a line, makes a block of 30000 bytes on the first thread and one of 40000 on the other, keeps them, prints
 * MADE; waits for a line, ends the interpreters, and prints OK.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* As Python.h of 3.9 and later has them; the headers are not needed. */
typedef struct thread_state PyThreadState;
typedef struct interpreter_state PyInterpreterState;
extern void Py_InitializeEx(int signals);
extern int Py_FinalizeEx(void);
extern PyThreadState *Py_NewInterpreter(void);
extern void Py_EndInterpreter(PyThreadState *);
extern PyThreadState *PyThreadState_Get(void);
extern PyThreadState *PyThreadState_Swap(PyThreadState *);
extern PyThreadState *PyThreadState_New(PyInterpreterState *);
extern PyInterpreterState *PyThreadState_GetInterpreter(PyThreadState *);
extern void PyThreadState_Clear(PyThreadState *);
extern void PyThreadState_DeleteCurrent(void);
extern void PyEval_AcquireThread(PyThreadState *);
extern void PyEval_ReleaseThread(PyThreadState *);
extern int PyRun_SimpleStringFlags(const char *, void *);

static void run(const char *code)
{
	if (PyRun_SimpleStringFlags(code, NULL))
		abort();
}

static sem_t told;

static void *other_thread(void *interpreter)
{
	sem_wait(&told);
	PyThreadState *state = PyThreadState_New(interpreter);

	PyEval_AcquireThread(state);
	run("kept.append(handle(40000))");
	PyThreadState_Clear(state);
	PyThreadState_DeleteCurrent();
	return NULL;
}

static void wait_for_line(void)
{
	for (int c = getchar(); c != '\n' && c != EOF;)
		c = getchar();
}

int main(void)
{
	Py_InitializeEx(0);
	PyThreadState *first = PyThreadState_Get(), *sub = Py_NewInterpreter();
	pthread_t thread;

	sem_init(&told, 0, 0);
	if (pthread_create(&thread, NULL, other_thread, PyThreadState_GetInterpreter(sub)))
		abort();
	run("def make(size):\n    return bytes(size)\ndef handle(size):\n    return make(size)\nkept = []\n"
	    "def rest():\n    import sys\n    sys.stdin.readline()\n");
	printf("PID %d\nREADY\n", getpid());
	fflush(stdout);
	run("rest()");
	run("kept.append(handle(30000))");
	PyEval_ReleaseThread(sub);
	sem_post(&told);
	pthread_join(thread, NULL);
	puts("MADE");
	fflush(stdout);
	wait_for_line();
	PyEval_AcquireThread(sub);
	Py_EndInterpreter(sub);
	PyThreadState_Swap(first);
	if (Py_FinalizeEx())
		abort();
	puts("OK embedded rounds=1");
	return 0;
}
