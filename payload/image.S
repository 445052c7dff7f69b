/* SPDX-License-Identifier: MIT */
/* The built payload as data, for memattach (include/payload_image.h). PAYLOAD_FILE comes from the build. */
	.section .rodata
	.globl	payload_image
	.globl	payload_image_end
	.type	payload_image, @object
	.p2align 12
payload_image:
	.incbin	PAYLOAD_FILE
payload_image_end:
	.size	payload_image, . - payload_image

	.section .note.GNU-stack, "", @progbits
