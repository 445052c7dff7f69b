/* SPDX-License-Identifier: MIT */
#include "exchange/otlp_resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/group_names.h"
#include "output/frame_name.h"

enum { RESOURCE_ATTRIBUTE = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };
enum { VALUE_STRING = 1, VALUE_NUMBER = 3 };

/* Attributes beyond this are not taken: a resource is no place for data. */
#define KEYS_MAX 64u

/* Keys have to differ: the first one counts. */
struct writer {
	struct proto *resource, value, attribute;
	struct name_text buffer;
	char *keys[KEYS_MAX];
	size_t count;
};

static bool is_new(struct writer *w, const char *key)
{
	for (size_t i = 0; i < w->count; i++)
		if (!strcmp(w->keys[i], key))
			return false;
	return w->count < KEYS_MAX && (w->keys[w->count] = strdup(key)) && ++w->count;
}

static void put(struct writer *w, const char *key)
{
	proto_clear(&w->attribute);
	proto_string(&w->attribute, ATTRIBUTE_KEY, key);
	proto_message(&w->attribute, ATTRIBUTE_VALUE, &w->value);
	proto_message(w->resource, RESOURCE_ATTRIBUTE, &w->attribute);
	proto_clear(&w->value);
}

static void put_text(struct writer *w, const char *key, const char *value)
{
	const char *clean = value[0] ? frame_name_clean(&w->buffer, value) : NULL;

	if (!clean || !is_new(w, key))
		return;
	proto_string(&w->value, VALUE_STRING, clean);
	put(w, key);
}

static void put_number(struct writer *w, const char *key, uint64_t value)
{
	if (!value || !is_new(w, key))
		return;
	proto_number(&w->value, VALUE_NUMBER, value);
	put(w, key);
}

/* ---- what users say ---- */

/* In place: %XX is a byte. */
static void decode(char *text)
{
	char *to = text;

	for (const char *s = text; *s; s++) {
		unsigned byte;
		if (*s == '%' && sscanf(s + 1, "%2x", &byte) == 1 && byte && s[1] && s[2]) {
			*to++ = (char)byte;
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

static char *trimmed(char *text)
{
	text += strspn(text, " \t");
	size_t n = strlen(text);
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		text[--n] = 0;
	return text;
}

static void put_said(struct writer *w)
{
	const char *name = getenv("OTEL_SERVICE_NAME"), *said = getenv("OTEL_RESOURCE_ATTRIBUTES");
	AUTO_FREE char *copy = strdup(said ? said : "");
	char *rest = copy, *part;

	put_text(w, "service.name", name ? name : "");
	while (rest && (part = strsep(&rest, ","))) {
		char *equals = strchr(part, '=');
		if (!equals)
			continue;
		*equals = 0;
		char *key = trimmed(part), *value = trimmed(equals + 1);
		decode(value);
		const char *clean = frame_name_clean(&w->buffer, key);
		if (*key && clean && !strcmp(clean, key))
			put_text(w, key, value);
	}
}

/* ---- what is known ---- */

/* "" if the sessions differ. */
static const char *common_text(const struct report *r, size_t offset)
{
	const char *first = r->session_count ? (const char *)&r->sessions[0] + offset : "";

	for (size_t i = 1; i < r->session_count; i++)
		if (strcmp(first, (const char *)&r->sessions[i] + offset) != 0)
			return "";
	return first;
}

static uint64_t common_pid(const struct report *r)
{
	for (size_t i = 1; i < r->session_count; i++)
		if (r->sessions[i].pid != r->sessions[0].pid)
			return 0;
	return r->session_count && r->sessions[0].pid > 0 ? (uint64_t)r->sessions[0].pid : 0;
}

void otlp_resource(struct proto *resource, const struct report *r)
{
	struct writer w = { .resource = resource };
	struct group_names names;

	put_said(&w);
	group_names_of(common_text(r, offsetof(struct recorded_session, cgroup)), &names);
	put_text(&w, "service.name", common_text(r, offsetof(struct recorded_session, command)));
	put_text(&w, "process.executable.name", common_text(r, offsetof(struct recorded_session, command)));
	put_text(&w, "process.executable.path", common_text(r, offsetof(struct recorded_session, program)));
	put_number(&w, "process.pid", common_pid(r));
	put_text(&w, "host.name", common_text(r, offsetof(struct recorded_session, host)));
	put_text(&w, "container.id", names.container);
	put_text(&w, "container.image.name", common_text(r, offsetof(struct recorded_session, image)));
	put_text(&w, "k8s.pod.uid", names.pod);
	for (size_t i = 0; i < w.count; i++)
		free(w.keys[i]);
	proto_done(&w.value);
	proto_done(&w.attribute);
	frame_name_done(&w.buffer);
}
