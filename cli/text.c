// SPDX-License-Identifier: MIT
/*
 * text.c - messages on standard error, colours, and numbers for people
 *
 * Numbers for programs go through json.c and are never rounded.
 */
#include "cli.h"
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WORDS 32
#define WORD_BYTES 320

static void sentence(enum cli_colour colour, const char *head, const char *format, va_list args)
{
	char text[8192]; /* two paths and an error, or all of a gap's names */

	vsnprintf(text, sizeof(text), format, args);
	fflush(stdout);
	cli_progress__clear();
	fprintf(stderr, "pem: %s%s%s%s\n", cli_colour(stderr, colour), head,
		*head != '\0' ? cli_colour(stderr, CLI_PLAIN) : "", pem_printable(text));
}

void cli_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	sentence(CLI_PLAIN, "", format, args);
	va_end(args);
}

int cli_error(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	sentence(CLI_RED, "error: ", format, args);
	va_end(args);
	return status;
}

int cli_status_of_errno(int error)
{
	switch (error < 0 ? -error : error) {
	case EINVAL:
	case ENOENT:
	case ENOTDIR:
	case EEXIST:
	case ENOTEMPTY:
	case EISDIR:
	case ENAMETOOLONG:
	case EBADMSG: /* a file that is damaged, or none of pem's */
	case ENODATA: /* and one that lacks what was asked for */
		return CLI_WRONG_INPUT;
	case EACCES:
	case ENOPKG:
	case EPERM:
	case EROFS:
	case ENOSPC:
	case EDQUOT:
	case ENOSYS:
	case ENOTSUP:
	case ENODEV:
	case EPROTONOSUPPORT:
	case ECONNREFUSED:
		return CLI_NOT_HERE;
	default:
		return CLI_FAILED;
	}
}

int cli_fail(int code, const struct pem_error *error)
{
	return cli_error(cli_status_of_errno(code), "%s", error->text);
}

void cli_log(enum pem_log_level level, const char *text, void *arg)
{
	const bool *quiet = arg;

	if (level == PEM_LOG_INFO || (*quiet && level != PEM_LOG_ERROR))
		return;
	if (level == PEM_LOG_PROGRESS)
		cli_progress__show(text);
	else if (level == PEM_LOG_ERROR)
		cli_error(0, "%s", text);
	else if (level == PEM_LOG_WARNING)
		cli_say("%s", text);
}

/* Print the first byte of a text, or its first character if it has several. Returns its bytes. */
static unsigned int put_character(FILE *out, const char *text)
{
	unsigned int bytes = pem_utf8_bytes(text, PEM_UTF8_BYTES_MAX);

	if (bytes == 0 || pem_is_control(pem_utf8_point(text, bytes))) {
		/* Of a character of several bytes the second one is no UTF-8 by itself. */
		fputc('?', out);
		return 1;
	}
	fwrite(text, 1, bytes, out);
	return bytes;
}

void cli_put_text(FILE *out, const char *text)
{
	while (*text != '\0')
		text += put_character(out, text);
}

void cli_put_word(FILE *out, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_@%+=:,./-";

	if (*text != '\0' && text[strspn(text, plain)] == '\0') {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	while (*text != '\0') {
		if (*text == '\'') {
			fputs("'\\''", out);
			text++;
		} else {
			text += put_character(out, text);
		}
	}
	fputc('\'', out);
}

const char *cli_colour(FILE *out, enum cli_colour colour)
{
	static const char *const sequences[] = {
		[CLI_PLAIN] = "\033[0m",   [CLI_BOLD] = "\033[1m", [CLI_GREEN] = "\033[32m",
		[CLI_YELLOW] = "\033[33m", [CLI_RED] = "\033[31m", [CLI_DIM] = "\033[2m",
	};
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	if (none != NULL && *none != '\0')
		return "";
	if (term == NULL || strcmp(term, "dumb") == 0 || !isatty(fileno(out)))
		return "";
	return sequences[colour];
}

/* The width that a terminal or COLUMNS gives. 0: unknown. */
static unsigned int said_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	if (columns != NULL && cli_parse_number(columns, 1000, &n) == 0 && n >= 40)
		return (unsigned int)n;
	return isatty(fileno(out)) ? 80 : 0;
}

bool cli_has_width(FILE *out)
{
	return said_width(out) != 0;
}

unsigned int cli_width(FILE *out)
{
	unsigned int width = said_width(out);

	return width != 0 ? width : 80;
}

const char *cli_event_name(const struct pem_event *event)
{
	return event->version > 1 ? cli_format("%s@%u", event->name, event->version) : event->name;
}

size_t cli_columns(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/*
 * Bytes of the part of a word that fits into columns: up to a sign that paths and names have, if
 * there is one in its second half.
 */
static size_t part_of(const char *word, size_t columns)
{
	size_t i, n = 0, end = 0, part = 0;

	for (i = 0; word[i] != '\0' && n <= columns; i++) {
		if (((unsigned char)word[i] & 0xc0) == 0x80)
			continue;
		end = i;
		if (n > columns / 2 && strchr("/:,-_.", word[i - 1]) != NULL)
			part = i;
		n++;
	}
	return part != 0 ? part : end;
}

/* Print a word, on several lines if a terminal's are too short. Returns the column after it. */
static unsigned int put_word_in(FILE *out, const char *word, unsigned int indent,
				unsigned int column, unsigned int width)
{
	while (cli_has_width(out) && width >= indent + 8 && column < width &&
	       cli_columns(word) > width - column) {
		size_t part = part_of(word, width - column);

		if (part == 0)
			break;
		cli_put_text(out, cli_format("%.*s", (int)part, word));
		fprintf(out, "\n%*s", (int)indent, "");
		word += part;
		column = indent;
	}
	cli_put_text(out, word);
	return column + (unsigned int)cli_columns(word);
}

void cli_wrap(FILE *out, const char *text, unsigned int indent, unsigned int column,
	      unsigned int width)
{
	bool fresh = true;

	for (;;) {
		size_t n, spaces = strspn(text, " ");
		char word[256];

		text += spaces;
		if (*text == '\n') { /* a paragraph ends */
			fprintf(out, "\n%*s", text[1] == '\n' ? 0 : (int)indent, "");
			column = indent;
			fresh = true;
			text++;
			continue;
		}
		n = strcspn(text, " \n");
		if (n == 0)
			break;
		if (n >= sizeof(word))
			n = sizeof(word) - 1;
		memcpy(word, text, n);
		word[n] = '\0';
		text += n;
		if (!fresh && column + 1 + cli_columns(word) > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			fresh = true;
		}
		fputs(fresh ? "" : " ", out);
		column = put_word_in(out, word, indent, column + !fresh, width);
		fresh = false;
	}
	fputc('\n', out);
}

static char *next_word(void)
{
	static char words[WORDS][WORD_BYTES];
	static unsigned int at;

	return words[at++ % WORDS];
}

const char *cli_format(const char *format, ...)
{
	char *word = next_word();
	va_list args;

	va_start(args, format);
	vsnprintf(word, WORD_BYTES, format, args);
	va_end(args);
	return word;
}

const char *cli_count(uint64_t count)
{
	char digits[24], *word = next_word(), *w = word;
	int i, n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);

	for (i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			*w++ = ',';
		*w++ = digits[i];
	}
	*w = '\0';
	return word;
}

const char *cli_signed(int64_t value)
{
	if (value >= 0)
		return cli_count((uint64_t)value);
	return cli_format("-%s", cli_count(-(uint64_t)value));
}

const char *cli_decimal(double value)
{
	double size = value < 0 ? -value : value;

	if (!(size < 1e18)) /* this is true for NaN, too */
		return cli_format("%g", value);
	if (size >= 1000)
		return cli_format("%s%s", value < 0 ? "-" : "", cli_count((uint64_t)(size + 0.5)));
	return cli_format("%.*f", size >= 100 ? 1 : size >= 10 ? 2 : 3, value);
}

const char *cli_duration(uint64_t ns)
{
	double s = (double)ns / 1e9;
	uint64_t whole = ns / 1000000000;

	if (ns < 1000)
		return cli_format("%u ns", (unsigned int)ns);
	if (ns < 1000000)
		return cli_format("%.*f us", ns < 100000 ? 2 : 1, s * 1e6);
	if (ns < 1000000000)
		return cli_format("%.*f ms", ns < 100000000 ? 2 : 1, s * 1e3);
	if (whole < 60)
		return cli_format("%.*f s", whole < 10 ? 2 : 1, s);
	if (whole < 3600)
		return cli_format("%u min %02u s", (unsigned int)(whole / 60),
				  (unsigned int)(whole % 60));
	return cli_format("%s h %02u min", cli_count(whole / 3600),
			  (unsigned int)(whole / 60 % 60));
}

const char *cli_bytes(uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned int i = 0;

	while (value >= 1024 && i < 6) {
		value /= 1024;
		i++;
	}
	return cli_format("%.*f %s", i == 0 || value >= 100 ? 0 : 1, value, units[i]);
}

const char *cli_sum__duration(uint64_t sum_ns)
{
	const char *words = cli_duration(sum_ns);

	return sum_ns == UINT64_MAX ? cli_format("over %s", words) : words;
}

const char *cli_sum__bytes(uint64_t sum_bytes)
{
	const char *words = cli_bytes(sum_bytes);

	return sum_bytes == UINT64_MAX ? cli_format("over %s", words) : words;
}

const char *cli_sum__mean_duration(uint64_t sum_ns, uint64_t count)
{
	return count != 0 && sum_ns != UINT64_MAX ? cli_duration(sum_ns / count) : "";
}

const char *cli_rate(uint64_t count, uint64_t ns)
{
	double rate = ns != 0 ? (double)count * 1e9 / (double)ns : 0;

	if (ns == 0 || count == 0)
		return "";
	if (rate >= 100)
		return cli_format("%s/s", cli_count((uint64_t)(rate + 0.5)));
	return cli_format("%.*f/s", rate >= 10 ? 1 : 2, rate);
}

const char *cli_percent(double share)
{
	double percent = share * 100;

	if (percent > 0 && percent < 0.01)
		return "<0.01 %";
	return cli_format("%.*f %%", percent < 1 ? 2 : 1, percent);
}

const char *cli_quantity(uint64_t value, const char *unit)
{
	if (strcmp(unit, "bytes") == 0)
		return cli_bytes(value);
	if (strcmp(unit, "ns") == 0)
		return cli_duration(value);
	if (*unit == '\0')
		return cli_count(value);
	return cli_format("%s %s", cli_count(value), unit);
}

int cli_parse_number(const char *text, uint64_t max, uint64_t *number)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || value > max)
		return -EINVAL;
	*number = value;
	return 0;
}

int cli_parse_share(const char *text, double *share)
{
	double value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	value = strtod(text, &end);
	if (strcmp(end, "%") != 0 || !(value > 0 && value <= 100))
		return -EINVAL;
	*share = value / 100;
	return 0;
}

int cli_parse_bytes(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGT";
	unsigned long long value;
	unsigned int shift = 0;
	const char *suffix;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0)
		return -EINVAL;
	if (*end != '\0') {
		suffix = strchr(suffixes, *end & ~0x20);
		if (suffix == NULL || *suffix == '\0')
			return -EINVAL;
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		end++;
		if (strcmp(end, "") != 0 && strcmp(end, "iB") != 0 && strcmp(end, "B") != 0)
			return -EINVAL;
	}
	if (value > UINT64_MAX >> shift)
		return -EINVAL;
	*bytes = value << shift;
	return 0;
}
