/* SPDX-License-Identifier: MIT */
/*
 * java.h - what the Java class and its native library agree in
 */
#ifndef PEM_CODEGEN_BACKEND_JAVA_H
#define PEM_CODEGEN_BACKEND_JAVA_H

#include "language.h"

#include <pem/stub.h>

/* "int", "long[]", "String", ... of a field. */
const char *pem_java__type(const struct pem_spec_field *field);
/* "byte", "short", ... of a list's or array's element type. */
const char *pem_java__element(unsigned type);
/*
 * PemShop, shop (never a word of Java), and shop_sale -> ShopSale or shopSale. The caller frees
 * them.
 */
char *pem_java__class(const struct pem_spec *spec);
char *pem_java__package(const struct pem_spec *spec);
char *pem_java__camel(const char *name, int first);
/* PROVIDER_jni.c (jni.c). */
void pem_java__put_jni(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec);

#endif
