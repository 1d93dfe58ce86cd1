/* SPDX-License-Identifier: MIT */
/*
 * python.h - what is in a Python module beside what its spec says (python_text.c)
 */
#ifndef PEM_CODEGEN_BACKEND_PYTHON_H
#define PEM_CODEGEN_BACKEND_PYTHON_H

#include "language.h"

/* The rest of the module's docstring, the imports and the functions that pack what varies. */
void pem_python__put_head(FILE *f);
/*
 * The functions that find libpem and register the provider; then _enable, _provider and _notify are
 * there.
 */
void pem_python__put_attach(FILE *f, const struct pem_spec *spec);

#endif
