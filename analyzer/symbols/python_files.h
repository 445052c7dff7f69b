/* SPDX-License-Identifier: MIT */
/* What the path of a Python file says: the module, and the shorter name that people know it by. */
#ifndef MEMATTACH_PYTHON_FILES_H
#define MEMATTACH_PYTHON_FILES_H

#define PYTHON_MODULE_TEXT 4096u

/*
 * The part of the path below the directory of installed packages or of the standard library that it is in
 * (site-packages, dist-packages, lib/python3.N); NULL: it is in none.
 */
const char *python_file_root(const char *file);

/*
 * "pandas.core.frame" of …/site-packages/pandas/core/frame.py; "json" of …/lib/python3.11/json/__init__.py;
 * "importlib._bootstrap" of <frozen importlib._bootstrap>. Of any other file, which may be in a directory of the same
 * name as another one, the path itself. It is cut to PYTHON_MODULE_TEXT bytes.
 */
void python_module_name(const char *file, char name[PYTHON_MODULE_TEXT]);

/* The file below the directory of packages, or below root, which ends with a slash; else all of it. root may be NULL.
 */
const char *python_short_file(const char *file, const char *root);

#endif
