/* SPDX-License-Identifier: MIT */
/* html_fields.c - values of the fields of events over time (contract: html_data.h) */
#include "html_data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* 192 MB, of which only what is written to becomes memory. */
#define CELLS_MAX (8u << 20)
#define CELLS_WRITTEN_MAX 120000u

/*
 * Addresses, numbers that name things (threads, inodes, errors) and times of the clock are not
 * quantities. A spec gives a quantity a unit, and such a number none.
 */
static int is_quantity(const struct pem_event *event, const struct pem_field *field)
{
	int has_series = event->meaning == PEM_MEANS_COUNTER || event->meaning == PEM_MEANS_GAUGE;

	if (field->max_count != 1 || field->base != 10 || field->label_count)
		return 0;
	if (field->type == PEM_TYPE_STRING || field->type == PEM_TYPE_LIST)
		return 0;
	if (field->role == PEM_ROLE_VALUE)
		return !has_series;
	return field->role == PEM_ROLE_SIZE || (field->role == PEM_ROLE_NONE && *field->unit);
}

uint32_t pem_html_fields__count(const struct pem_event *event)
{
	uint32_t i, count = 0;

	for (i = 0; i < event->field_count; i++)
		count += (uint32_t)is_quantity(event, &event->fields[i]);
	return count;
}

uint32_t pem_html_fields__index(const struct pem_event *event, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < event->field_count; i++)
		if (is_quantity(event, &event->fields[i]) && n-- == 0)
			break;
	return i;
}

int pem_html_fields__make(struct pem_html_data *data)
{
	size_t left = CELLS_MAX, i;

	for (i = 0; i < data->series_count; i++) {
		struct pem_html_series *series = &data->series[i];
		size_t cells = (size_t)pem_html_fields__count(series->event) * data->coarse_count;

		if (!cells)
			continue;
		if (cells > left) {
			data->series_without_fields++;
			continue;
		}
		left -= cells;
		series->fields = calloc(cells, sizeof(*series->fields));
		if (!series->fields)
			return -ENOMEM;
	}
	return 0;
}

void pem_html_fields__add(struct pem_html_data *data, struct pem_html_series *series,
			  const struct pem_record *record)
{
	uint64_t bin = record->time_ns / data->coarse_ns;
	struct pem_html_cell *cell = series->fields;
	uint32_t i;

	if (bin >= data->coarse_count)
		bin = data->coarse_count - 1;
	for (i = 0; i < record->event->field_count; i++) {
		double value;

		if (!is_quantity(record->event, &record->event->fields[i]))
			continue;
		value = pem_record__f64(record, i);
		if (isfinite(value))
			pem_html_cell__add(&cell[bin], value);
		cell += data->coarse_count;
	}
}

uint32_t pem_html_fields__fold(const struct pem_html_data *data)
{
	uint32_t fold = 1;

	for (;; fold *= 2) {
		uint64_t used = 0;
		size_t i;
		uint32_t n;

		for (i = 0; i < data->series_count; i++) {
			const struct pem_html_series *series = &data->series[i];

			for (n = pem_html_fields__count(series->event); series->fields && n-- > 0;)
				used += pem_html_cells__used(series->fields +
								     (size_t)n * data->coarse_count,
							     data->coarse_count, fold);
		}
		for (i = 0; i < data->between_count; i++)
			if (data->between_cells[i])
				used += pem_html_cells__used(data->between_cells[i],
							     data->coarse_count, fold);
		if (used <= CELLS_WRITTEN_MAX || fold >= data->coarse_count)
			return fold;
	}
}
