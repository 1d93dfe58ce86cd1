# SPDX-License-Identifier: MIT
"""
shop.py - events from Python: pem_shop.py is made from shop.xml

    pem gen --lang python shop.xml -o .
    pem record -- python3 shop.py
"""
import sys

import pem_shop

GOODS = ["tea", "cheese", "bread"]


def serve(customer):
    with pem_shop.shop_serve(customer):
        pem_shop.notify_shop_sale(250 * customer, customer, pem_shop.Payment.CARD, GOODS[customer % 3])


customers = int(sys.argv[1]) if len(sys.argv) > 1 else 3
for customer in range(1, customers + 1):
    serve(customer)
print(f"{customers} customers served")
