/* SPDX-License-Identifier: MIT */
/*
 * html.c - exporter 'html': one page that opens offline and shows each layer on one timeline
 *
 * This file writes the page (built from page/ at build time) around the data. html_data.c makes the
 * data from a trace. page/ has the page's code.
 */
#include "html_data.h"
#include "output.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

/*
 * The page, with DATA_MARK once at the place of the data, and then OTHER_MARK at that of another
 * run's: $(B)/gen/viz-export/page.html, see page/build.mk.
 */
extern const char pem_html_page[] __attribute__((visibility("hidden")));
extern const char pem_html_page_end[] __attribute__((visibility("hidden")));

#define DATA_MARK "@data@"
#define OTHER_MARK "@other@"

/* Write the page up to a mark. Returns the part after the mark. NULL: the page has none. */
static const char *write_up_to(FILE *out, const char *page, const char *mark)
{
	size_t bytes = (size_t)(pem_html_page_end - page);
	const char *found = memmem(page, bytes, mark, strlen(mark));

	if (!found)
		return NULL;
	fwrite(page, 1, (size_t)(found - page), out);
	return found + strlen(mark);
}

/* Write another run's data, which are read after those of the first run were freed. */
static int write_other(FILE *out, const struct pem_export_options *options, struct pem_error *error)
{
	struct pem_export_options other = *options;
	struct pem_html_data data;
	int err;

	other.title = options->other_title;
	err = pem_html_data__read(&data, options->other, &other, error);
	if (!err)
		pem_html__write(out, &data, options->other, &other);
	pem_html_data__free(&data);
	return err;
}

/* Write the page and free the data. */
static int write_page(FILE *out, struct pem_html_data *data, struct pem_trace *trace,
		      const struct pem_export_options *options, struct pem_error *error)
{
	const char *rest = write_up_to(out, pem_html_page, DATA_MARK);
	int err = 0;

	if (rest)
		pem_html__write(out, data, trace, options);
	pem_html_data__free(data);
	memset(data, 0, sizeof(*data));
	if (rest)
		rest = write_up_to(out, rest, OTHER_MARK);
	if (!rest) {
		if (error)
			snprintf(error->text, sizeof(error->text),
				 "the page built into export-html.so has no place for data; "
				 "rebuild it");
		return -EINVAL;
	}
	if (options->other)
		err = write_other(out, options, error);
	fwrite(rest, 1, (size_t)(pem_html_page_end - rest), out);
	return err;
}

static int run(struct pem_trace *trace, const char *path, const struct pem_export_options *given,
	       struct pem_error *error)
{
	struct pem_export_options options;
	struct pem_output output;
	struct pem_html_data data;
	locale_t plain, before;
	int err;

	err = pem_export__options(&options, given, error);
	if (err)
		return err;
	err = pem_html_data__read(&data, trace, &options, error);
	if (err)
		goto out;
	err = pem_output__open(&output, path, error);
	if (err)
		goto out;
	/* JSON's decimal point is a point in all locales. */
	plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	before = plain ? uselocale(plain) : (locale_t)0;
	err = write_page(output.file, &data, trace, &options, error);
	if (before)
		uselocale(before);
	if (plain)
		freelocale(plain);
	err = pem_output__finish(&output, err, error);
out:
	pem_html_data__free(&data);
	return err;
}

__attribute__((visibility("default"))) const struct pem_exporter pem_exporter = {
	.size = sizeof(struct pem_exporter),
	.abi_version = PEM_EXPORT_ABI_VERSION,
	.name = "html",
	.description = "one page that opens offline: every layer on one timeline",
	.suffix = ".html",
	.run = run,
	.takes_other = 1,
};
