// SPDX-License-Identifier: LGPL-2.1-or-later
/* deliver.c - which events the counters source can deliver on this machine */
#include "counters.h"

#include <errno.h>

int counter__can_deliver(const struct pem_event *event, struct pem_error *reason)
{
	struct sample_layout layout;
	struct map_layout map_layout;
	struct perf_event_attr attr;
	int rc;

	if (event->source_kind == PEM_SOURCE_PERF) {
		rc = counter__encode(event->source_name, &attr);
	} else if (event->source_kind == PEM_SOURCE_SAMPLE) {
		if (counter__is_of_maps(event) ? map__layout(event, &map_layout) < 0
					       : sample__layout(event, &layout) < 0) {
			counter__set_error(reason, "has fields that a sample can't fill");
			return 0;
		}
		rc = counter__encode_clock(event->source_name, &attr);
	} else {
		return -ENOENT;
	}
	if (rc == 0)
		rc = counter__try(&attr);
	if (rc == 0)
		return 1;
	counter__explain(event->source_name, &attr, rc, reason);
	return 0;
}
