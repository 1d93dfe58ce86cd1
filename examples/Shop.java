// SPDX-License-Identifier: MIT
//
// Shop.java - events from Java: pem.shop.PemShop is made from shop.xml, and its native library from shop_jni.c
//
//	pem gen --lang java shop.xml -o gen
//	cc -O2 -shared -fPIC -Igen -I$JAVA_HOME/include -I$JAVA_HOME/include/linux gen/shop_jni.c -o libpem_shop_java.so
//	javac -d classes -sourcepath gen Shop.java
//	pem record -- java -Djava.library.path=. -cp classes Shop

import pem.shop.PemShop;
import pem.shop.PemShop.Payment;

public final class Shop {
	private static final String[] GOODS = { "tea", "cheese", "bread" };

	public static void main(String[] args) {
		int customers = args.length > 0 ? Integer.parseInt(args[0]) : 3;

		for (int customer = 1; customer <= customers; customer++)
			serve(customer);
		System.out.println(customers + " customers served");
	}

	@SuppressWarnings("try") // the interval is there for its beginning and end
	private static void serve(int customer) {
		try (PemShop.ShopServe interval = PemShop.shopServe(customer)) {
			String item = GOODS[customer % GOODS.length];
			PemShop.notifyShopSale(250L * customer, customer, Payment.CARD, item);
		}
	}
}
