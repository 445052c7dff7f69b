/* SPDX-License-Identifier: MIT */
/* What the path of a Python file says: the module, and the shorter name that people know it by. */
#pragma once

#define PYTHON_MODULE_TEXT 4096u

/*
 * The part of the path below the directory of installed packages or of the standard library that it is in
 * (site-packages, dist-packages, lib/python3.N); NULL: it is in none.
 */
const char *python_file_root(const char *file);

/*
 * "pandas.core.frame" of pandas/core/frame.py; "json" of json/__init__.py; "importlib._bootstrap" of
 * <frozen importlib._bootstrap>. below: the part of the file by which it is found (python_path.h). Where there is none
 * (NULL), and of what is no .py, such as a program that is started by its name, the path itself. It is cut to
 * PYTHON_MODULE_TEXT bytes.
 */
void python_file_module(const char *file, const char *below, char name[PYTHON_MODULE_TEXT]);
