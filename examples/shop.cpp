// SPDX-License-Identifier: MIT
/*
 * shop.cpp - events from C++17: shop.hpp is made from shop.xml, and shop.h beside it
 *
 *	pem gen --lang c++ shop.xml -o gen
 *	c++ -std=c++17 -O2 -Igen shop.cpp -o shop -ldl
 *	pem record -- ./shop
 */
#include "shop.hpp"

#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

static void serve(std::uint32_t customer)
{
	static constexpr std::array<std::string_view, 3> goods = {"tea", "Käse", "bread"};
	const pem::shop_serve_scope interval(customer); // ends with this block

	pem::notify_shop_sale(250 * customer, customer, pem::shop::Payment::card,
			      goods[customer % goods.size()]);
}

int main(int argc, char **argv)
{
	const auto customers = argc > 1 ? static_cast<std::uint32_t>(std::stoul(argv[1])) : 3;

	for (std::uint32_t customer = 1; customer <= customers; customer++)
		serve(customer);
	std::cout << customers << " customers served\n";
}
