/* SPDX-License-Identifier: MIT */
#include "html/html_capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/line_width.h"

#define TEXT_BYTES 60000u

bool html_capture_begin(struct html_capture *c, const struct report *r)
{
	*c = (struct html_capture){ 0 };
	c->out = open_memstream(&c->text, &c->bytes);
	c->put = (struct text){
		.report = r, .out = c->out, .columns = LINE_ANY_WIDTH, .bold = "", .dim = "", .warn = "", .plain = ""
	};
	return c->out;
}

char *html_capture_end(struct html_capture *c)
{
	if (fclose(c->out)) {
		free(c->text);
		return NULL;
	}
	if (c->bytes > TEXT_BYTES) {
		size_t n = TEXT_BYTES - 8;
		while (n && ((unsigned char)c->text[n] & 0xc0) == 0x80)
			n--;
		strcpy(c->text + n, " ...\n");
	}
	return c->text;
}

int html_capture_put(struct html_capture *c, const char *name, struct json *j)
{
	AUTO_FREE char *text = html_capture_end(c);

	if (text)
		json_string(j, name, text);
	return text ? 0 : -ENOMEM;
}
