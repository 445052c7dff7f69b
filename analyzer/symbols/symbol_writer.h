/* SPDX-License-Identifier: MIT */
/*
 * What memattach has memanalyze do when a session has ended: name all frames of the dump while the files of the target
 * can still be had (include/symbol_request.h). memattach executes memanalyze for that, instead of reading DWARF itself:
 * the process that does it has then nothing of memattach's memory, the code is that of the reports, and the jail
 * (jail.h) is around what reads files in either case.
 */
#pragma once

/* Arguments after the option. The exit status. */
int symbol_writer_main(int argc, char **argv);
