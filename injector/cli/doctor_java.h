/* SPDX-License-Identifier: MIT */
/*
 * What --doctor says of a virtual machine of Java in the process: which one it is, whether the Java frames of its
 * threads can be read, and with --verbose the Java stack of each thread as it is in this moment. Nothing where there
 * is none.
 */
#pragma once

#include "session/session.h"

void doctor_java(const struct session *s);
