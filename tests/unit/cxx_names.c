/* SPDX-License-Identifier: MIT */
/* cxx_names.c - names of C++ are shortened to what people write, and others stay */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cxx_names.h"

#include <string.h>

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

static void expect(const char *full, const char *shorter)
{
	char text[1024];

	assert_true(strlen(full) < sizeof(text));
	strcpy(text, full);
	pem_cxx__shorten(text);
	assert_string_equal(text, shorter);
}

static void types_have_their_usual_names(void **state)
{
	(void)state;
	expect("f(" STRING " const&)", "f(std::string const&)");
	expect("f(std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >)",
	       "f(std::wstring)");
	expect("std::basic_ostream<char, std::char_traits<char> >& std::operator<< "
	       "<std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, "
	       "char const*)",
	       "std::ostream& std::operator<< <std::char_traits<char>>(std::ostream&, char "
	       "const*)");
	expect("f(std::__1::vector<int, std::__1::allocator<int>>)", "f(std::vector<int>)");
	expect("std::map<" STRING ", std::vector<int, std::allocator<int> >, std::less<" STRING
	       " >, std::allocator<std::pair<" STRING
	       " const, std::vector<int, std::allocator<int> > > > >::operator[](" STRING "&&)",
	       "std::map<std::string, std::vector<int>>::operator[](std::string&&)");
	expect("std::unique_ptr<S, std::default_delete<S> >::~unique_ptr()",
	       "std::unique_ptr<S>::~unique_ptr()");
}

static void other_names_stay(void **state)
{
	static const char *const names[] = {
		"",
		"main",
		"helper (a.c)",
		"A(unsigned long)::{lambda(int)#1}::operator()(int) const",
		"std::pair<int, std::less<int>>::f()",
		"shop::vector<int, std::allocator<int>>::f()",
		"f(int, std::allocator<int>)",
		"bool operator< <int>(X<int> const&)",
		"X::operator->()",
		"X::operator()(int) const",
		"X::operator>>=(int)",
		"std::vector<int, std::allocator<",
		"f<(a>b)>()",
		">>>>",
		"((((",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i], names[i]);
}

static void deep_names_are_read_to_the_end(void **state)
{
	char text[4097];
	size_t i;

	(void)state;
	for (i = 0; i < 4096; i++)
		text[i] = i < 2048 ? '<' : '>';
	text[4096] = '\0';
	pem_cxx__shorten(text);
	assert_int_equal(strlen(text), 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_have_their_usual_names),
		cmocka_unit_test(other_names_stay),
		cmocka_unit_test(deep_names_are_read_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
