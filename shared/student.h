/* SPDX-License-Identifier: MIT */
/* student.h - Student's distribution */
#ifndef PEM_SHARED_STUDENT_H
#define PEM_SHARED_STUDENT_H

/* Probability that |T| is at least |t|, with df degrees of freedom (above 0, need not be whole). */
double pem_student__p(double t, double df);
/* The t that |T| exceeds with probability p, 0 < p < 1. */
double pem_student__quantile(double p, double df);

#endif
