/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wrappers.c - functions that allocate for their callers: operator new, strdup, xmalloc and the
 * like
 *
 * An allocation's site is in the first caller that is no wrapper. Wrappers are known by name: those
 * of the list below, and those of the variable PEM_WRAPPERS, separated by commas. A name is that of
 * a symbol, as nm prints it, without what the compiler appends after a dot (xmalloc.part.0). It is
 * looked up in the dynamic symbols of the object that has the site, and of the program itself in
 * all symbols of its file, since a program exports few. There a star at a name's end stands for any
 * text.
 *
 * Not here: how a caller is found (frames.c).
 */
#include "libc/wrappers.h"

#include "libc/elf_names.h"
#include "libc/frames.h"
#include "libc/libc.h"
#include "producer/rights.h"
#include "runtime_dir.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const known[] = {
	/* C */
	"strdup", "__strdup", "strndup", "__strndup", "wcsdup", "__wcsdup",
	/* C++: operator new, and what a string calls */
	"_Znwm", "_ZnwmRKSt9nothrow_t", "_ZnwmSt11align_val_t",
	"_ZnwmSt11align_val_tRKSt9nothrow_t", "_Znam", "_ZnamRKSt9nothrow_t",
	"_ZnamSt11align_val_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
	"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
	"_ZNSt15__new_allocatorI*", "_ZN9__gnu_cxx13new_allocatorI*", "_ZNSt16allocator_traitsI*",
	"_ZNSt12_Vector_baseI*",
	/* programs' own */
	"xmalloc", "xcalloc", "xrealloc", "xreallocarray", "xstrdup", "xstrndup", "xmemdup",
	"xzalloc", "xmallocz", "xnmalloc", "xnrealloc", "x2realloc", "x2nrealloc", "xcharalloc",
	"xmemdupz", "ximalloc", "xizalloc", "xicalloc", "xirealloc", "xpalloc", "xnewarray",
	"emalloc", "ecalloc", "erealloc", "estrdup", "safe_malloc", "safe_calloc", "safe_realloc",
	"checked_malloc", "zmalloc", "zcalloc", "zrealloc", "zstrdup",
	/* GLib */
	"g_malloc", "g_malloc0", "g_malloc_n", "g_malloc0_n", "g_realloc", "g_realloc_n",
	"g_try_malloc", "g_try_malloc0", "g_try_malloc_n", "g_try_malloc0_n", "g_try_realloc",
	"g_try_realloc_n", "g_aligned_alloc", "g_aligned_alloc0", "g_slice_alloc", "g_slice_alloc0",
	"g_slice_copy", "g_strdup", "g_strndup", "g_memdup", "g_memdup2",
	/* Python */
	"PyMem_Malloc", "PyMem_Calloc", "PyMem_Realloc", "PyMem_RawMalloc", "PyMem_RawCalloc",
	"PyMem_RawRealloc", "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc",
	"_PyObject_Malloc", "_PyObject_Calloc", "_PyObject_Realloc", "_PyMem_RawMalloc",
	"_PyMem_RawCalloc", "_PyMem_RawRealloc", "_PyMem_Strdup", "_PyMem_RawStrdup",
	/* other libraries */
	"CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_strdup", "CRYPTO_strndup",
	"av_malloc", "av_mallocz", "av_calloc", "av_realloc", "av_strdup", "__rust_alloc",
	"__rust_alloc_zeroed", "__rust_realloc", "__rdl_alloc", "__rdl_alloc_zeroed",
	"__rdl_realloc"};

#define KNOWN (sizeof(known) / sizeof(known[0]))
#define OWN_MAX 64u /* names of PEM_WRAPPERS */
#define WALK_MAX 8u /* wrappers of wrappers, and frames of this library */

/* Copies of the variable's names. */
static char own_text[2048];
static const char *own[OWN_MAX];
static unsigned own_count;

__attribute__((constructor(101))) static void read_variable(void)
{
	const char *text = pem_variable("PEM_WRAPPERS");
	char *at;

	if (!text || strlen(text) >= sizeof(own_text))
		return;
	memcpy(own_text, text, strlen(text));
	for (at = own_text; *at && own_count < OWN_MAX;) {
		if (*at != ',')
			own[own_count++] = at;
		at += strcspn(at, ",");
		if (*at)
			*at++ = '\0';
	}
}

static const char *name_at(size_t i)
{
	return i < KNOWN ? known[i] : own[i - KNOWN];
}

/* --- the program's own symbols --- */

struct range {
	uintptr_t start, end;
};

static struct range ranges[1024]; /* more are ignored */
static unsigned range_count;

enum { UNREAD, BEING_READ, READ };
static uint32_t program_state;

/* Which two first letters have the names? A bit of each. */
static uint64_t letters[4];

static unsigned letters_of(const char *name)
{
	return ((unsigned char)name[0] * 31u + (unsigned char)name[1] * 7u +
		(name[1] ? (unsigned char)name[2] : 0)) %
	       256;
}

static bool is_name(const char *name)
{
	size_t i, length;

	if (!(letters[letters_of(name) / 64] >> letters_of(name) % 64 & 1))
		return false;
	length = strcspn(name, ".");
	for (i = 0; i < KNOWN + own_count; i++) {
		size_t same = strcspn(name_at(i), "*");

		if (!strncmp(name_at(i), name, same) && (name_at(i)[same] || length == same))
			return true;
	}
	return false;
}

/* file: bytes of it. base: the loader's number for its addresses. */
static void read_symbols(const char *file, uint64_t bytes, uintptr_t base)
{
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Shdr *sections, *symbols = NULL, *texts;
	const Elf64_Sym *symbol;
	uint64_t i;

	if (bytes < sizeof(*head) || head->e_shentsize != sizeof(*sections) || head->e_shoff % 8 ||
	    head->e_shoff > bytes || head->e_shnum > (bytes - head->e_shoff) / sizeof(*sections))
		return;
	sections = (const void *)(file + head->e_shoff);
	for (i = 0; i < head->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			symbols = &sections[i];
	if (!symbols || symbols->sh_link >= head->e_shnum)
		return;
	texts = &sections[symbols->sh_link];
	if (symbols->sh_offset % 8 || symbols->sh_offset > bytes ||
	    symbols->sh_size > bytes - symbols->sh_offset || texts->sh_offset > bytes ||
	    texts->sh_size > bytes - texts->sh_offset || !texts->sh_size ||
	    file[texts->sh_offset + texts->sh_size - 1])
		return;
	symbol = (const void *)(file + symbols->sh_offset);
	for (i = symbols->sh_size / sizeof(*symbol); i--; symbol++) {
		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_size ||
		    symbol->st_shndx == SHN_UNDEF || symbol->st_name >= texts->sh_size ||
		    !is_name(file + texts->sh_offset + symbol->st_name))
			continue;
		if (range_count == sizeof(ranges) / sizeof(ranges[0]))
			return;
		ranges[range_count].start = base + symbol->st_value;
		ranges[range_count++].end = base + symbol->st_value + symbol->st_size;
	}
}

/* The kernel lets nobody change the file of a program that runs. */
static void read_program(uintptr_t base)
{
	char *file;
	size_t i;
	long fd, bytes;

	for (i = 0; i < KNOWN + own_count; i++)
		letters[letters_of(name_at(i)) / 64] |= 1ull << letters_of(name_at(i)) % 64;
	if (pem_rights__restricted())
		return;
	fd = pem_libc_internal_call(SYS_openat, AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	bytes = pem_libc_internal_call(SYS_lseek, fd, 0, SEEK_END);
	file = bytes > 0 ? (char *)pem_libc_internal_call(SYS_mmap, NULL, bytes, PROT_READ,
							  MAP_PRIVATE, fd, 0)
			 : MAP_FAILED;
	if (file != MAP_FAILED) {
		read_symbols(file, (uint64_t)bytes, base);
		pem_libc_internal_call(SYS_munmap, file, bytes);
	}
	pem_libc_internal_call(SYS_close, fd);
}

enum answer { NO, YES, NOT_YET };

static enum answer is_in_program(uintptr_t base, uintptr_t pc)
{
	uint32_t state = UNREAD;
	unsigned i;

	/* wp: another thread may have read the symbols */
	if (__atomic_compare_exchange_n(&program_state, &state, BEING_READ, 0, __ATOMIC_ACQUIRE,
					__ATOMIC_ACQUIRE)) {
		read_program(base);
		/* WP */
		__atomic_store_n(&program_state, READ, __ATOMIC_RELEASE);
		state = READ;
	}
	if (state != READ)
		return NOT_YET;
	for (i = 0; i < range_count; i++)
		if (pc >= ranges[i].start && pc < ranges[i].end)
			return YES;
	return NO;
}

/* --- is it a wrapper? --- */

static enum answer find_answer(const struct link_map *object, uintptr_t pc)
{
	size_t i;

	for (i = 0; i < KNOWN + own_count; i++)
		if (pem_elf__is_function(object->l_addr, object->l_ld, name_at(i), pc))
			return YES;
	return object == _r_debug.r_map ? is_in_program(object->l_addr, pc) : NO;
}

/*
 * Answers: an address, a sum of the code there, and a bit. With the sum an answer does not outlive
 * a library that is closed.
 */
static uint64_t answers[4096];

/* site was in an object, so that there is code: in the page of the call, which lies before it. */
static uint64_t entry_of(uintptr_t site)
{
	uint64_t code = *(const uint64_t *)((site - 1) & ~(uintptr_t)7);

	return (uint64_t)site << 16 | (code * 0x9e3779b97f4a7c15u >> 48 & ~1u);
}

/* An address that is in no object, such as one that wrong tables lead to, is not read. */
static bool is_wrapper(uintptr_t site)
{
	uint64_t *at = &answers[(site ^ site >> 12) % (sizeof(answers) / sizeof(answers[0]))];
	uint64_t kept = __atomic_load_n(at, __ATOMIC_RELAXED);
	const struct link_map *object;
	enum answer answer;

	if (kept >> 16 == site && (kept & ~UINT64_C(1)) == entry_of(site))
		return kept & 1;
	object = pem_libc_frame__object(site);
	if (!object)
		return false;
	answer = find_answer(object, site - 1);
	if (answer != NOT_YET)
		__atomic_store_n(at, entry_of(site) | answer, __ATOMIC_RELAXED);
	return answer == YES;
}

/* Not inlined: its frame is the first. */
__attribute__((noinline)) uintptr_t pem_libc_caller(uintptr_t site)
{
	struct pem_libc_frame frame = pem_libc_frame__own();
	int saved_errno = errno;
	unsigned i = 0;

	if (!is_wrapper(site)) {
		errno = saved_errno;
		return site;
	}
	while (frame.pc != site && i++ < WALK_MAX)
		if (!pem_libc_frame__step(&frame))
			break;
	for (i = 0; frame.pc == site && i++ < WALK_MAX;) {
		if (!pem_libc_frame__step(&frame))
			break;
		site = frame.pc;
		if (!is_wrapper(site))
			break;
	}
	errno = saved_errno;
	return site;
}
