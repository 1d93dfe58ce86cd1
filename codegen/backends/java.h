/* SPDX-License-Identifier: MIT */
/* java.h - the names that the Java class and its native library share */
#ifndef PEM_CODEGEN_BACKEND_JAVA_H
#define PEM_CODEGEN_BACKEND_JAVA_H

#include "language.h"

#include <pem/stub.h>

/* The Java type of a field: "int", "long[]", "String", ... */
const char *pem_java__type(const struct pem_spec_field *field);
/* The Java type of an element of a list or array: "byte", "short", ... */
const char *pem_java__element(unsigned type);
/*
 * Java names: PemShop; shop (never a word of Java); ShopSale or shopSale for shop_sale. The caller
 * frees them.
 */
char *pem_java__class(const struct pem_spec *spec);
char *pem_java__package(const struct pem_spec *spec);
char *pem_java__camel(const char *name, int first);
/* Print PROVIDER_jni.c (jni.c). */
void pem_java__put_jni(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec);

#endif
