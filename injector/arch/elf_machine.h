/* SPDX-License-Identifier: MIT */
/*
 * What of ELF differs from machine to machine: the number and the name of the machine, the relocation types that are
 * read, in the machine's own numbers.
 *
 *   MACHINE_ELF, MACHINE_NAME   e_machine of the images that can be looked at, and what messages call it
 *   RELOCATION_JUMP_SLOT        a GOT entry that is called through
 *   RELOCATION_GLOB_DAT         a GOT entry that is read
 *   RELOCATION_WORD             a word of data that holds the address of a symbol, plus the addend
 *   RELOCATION_RELATIVE         a word that holds an address of its own module
 *   RELOCATION_TLS_MODULE       struct tls_index of a thread-local variable begins here: the number of the module
 *   RELOCATION_TLS_OFFSET       a word that holds the distance of a thread-local variable from the thread pointer
 *   RELOCATION_TLS_DESCRIPTOR   two words: a function that returns that distance, and what it is told
 */
#pragma once

#include <elf.h>

#if defined(__x86_64__)
#include "arch/x86_64/elf_machine.h"
#elif defined(__aarch64__)
#include "arch/aarch64/elf_machine.h"
#else
#error "memattach knows no relocations of this architecture yet"
#endif
