/* SPDX-License-Identifier: MIT */
#include "process/shown_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

int shown_frames_add(struct shown_frame **list, uint32_t *count, const struct shown_frame *frame, struct budget *budget,
                     struct err *e)
{
	struct shown_frame *frames = *list, shown = *frame;

	int rc = budget_take(budget, sizeof shown + strlen(frame->function) + strlen(frame->file) + 2, e);
	if (rc)
		return rc;
	shown.function = strdup(frame->function);
	shown.file = strdup(frame->file);
	if (!shown.function || !shown.file || !grow_list(frames, *count)) {
		free(shown.function);
		free(shown.file);
		return err_set(e, ENOMEM, "no memory for frames");
	}
	*list = frames;
	frames[(*count)++] = shown;
	return 0;
}

void shown_frames_free(struct shown_frame **list, uint32_t *count)
{
	for (uint32_t i = 0; i < *count; i++) {
		free((*list)[i].function);
		free((*list)[i].file);
	}
	free(*list);
	*list = NULL;
	*count = 0;
}
