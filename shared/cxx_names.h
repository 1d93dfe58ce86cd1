/* SPDX-License-Identifier: MIT */
/* cxx_names.h - names of C++ as people write them */
#ifndef PEM_SHARED_CXX_NAMES_H
#define PEM_SHARED_CXX_NAMES_H

/*
 * Shorten a demangled name in place: containers of the standard library lose arguments that are the
 * usual ones, and types get the names that programs use for them, such as std::string. Other names
 * stay as they are. Does not allocate.
 */
void pem_cxx__shorten(char *name);

#endif
