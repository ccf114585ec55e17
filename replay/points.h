/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Choosing the points to replay. No point lies before the run's begin mark or
 * after its end mark: teardown logs unflushed writes as if they were durable.
 */
#ifndef ACKPROOF_POINTS_H
#define ACKPROOF_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit.h"

struct points {
	uint64_t	*entry;		/* ascending, each once */
	size_t		nr;
};

/*
 * Choose by @spec: a comma-separated list of KIND, N@KIND or an entry's
 * number, where KIND is ack, flush, fua, mark or suspects (the acks that
 * @a found lost). N@KIND takes N of them, evenly spread or, if @sample, drawn
 * by @seed; all of them if there are no more than N.
 *
 * Returns 0, with @pts owned by the caller, or -EINVAL with a message in
 * @error.
 */
int points_choose(struct points *pts, const char *spec, struct lw_log *log,
		  const struct model *m, const struct audit *a, bool sample,
		  uint64_t seed, char *error, size_t size);

#endif
