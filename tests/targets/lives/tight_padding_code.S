/* SPDX-License-Identifier: MIT */
/* What is last in a program's code begins a page, which has room behind it then: nops in the function _fini. */
	.section .fini, "ax", %progbits
	.balign	4096
	.section .note.GNU-stack, "", %progbits
