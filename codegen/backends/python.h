/* SPDX-License-Identifier: MIT */
/* python.h - the parts of a Python module that do not depend on its events (python_text.c) */
#ifndef PEM_CODEGEN_BACKEND_PYTHON_H
#define PEM_CODEGEN_BACKEND_PYTHON_H

#include "language.h"

/*
 * Print the rest of the module's docstring, the imports, and the functions that pack strings, lists
 * and arrays.
 */
void pem_python__put_head(FILE *f);
/*
 * Print the functions that find libpem and register the provider. They define _enable, _provider
 * and _notify.
 */
void pem_python__put_attach(FILE *f, const struct pem_spec *spec);

#endif
