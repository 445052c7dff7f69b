/* SPDX-License-Identifier: MIT */
/* The parts of the HTML report that are the same in each, in their order. Made of html/ when memanalyze is built, by
 * html/embed.cmake. */
#pragma once

extern const char html_page_begin[];   /* up to the text report; */
extern const char html_page_head[];    /* up to html_head; */
extern const char html_page_frames[];  /* up to the functions; */
extern const char html_page_nodes[];   /* up to the nodes; */
extern const char html_page_step[];    /* up to html_spans.step; */
extern const char html_page_spans[];   /* up to html_spans.text; */
extern const char html_page_parts[];   /* up to html_machine; */
extern const char html_page_scripts[]; /* the scripts of all pages; */
extern const char html_page_machine[]; /* that of html_machine, only with it; */
extern const char html_page_end[];
