// SPDX-License-Identifier: MIT
/*
 * shop.c - events from C: shop.h is made from shop.xml
 *
 *	pem gen --lang c shop.xml -o gen
 *	cc -O2 -Igen shop.c -o shop -ldl
 *	pem record -- ./shop
 */
#include "shop.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void serve(uint32_t customer)
{
	static const char *const goods[] = {"tea", "Käse", "bread"};

	pem_notify_shop_serve_begin(customer);
	pem_notify_shop_sale(250 * customer, customer, PEM_SHOP_PAYMENT_CARD, goods[customer % 3]);
	pem_notify_shop_serve_end(customer);
}

int main(int argc, char **argv)
{
	uint32_t customers = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 3, customer;

	for (customer = 1; customer <= customers; customer++)
		serve(customer);
	printf("%u customers served\n", customers);
	return 0;
}
