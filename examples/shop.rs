// SPDX-License-Identifier: MIT
//! shop.rs - events from Rust: the crate pem_shop is made from shop.xml
//!
//!     pem gen --lang rust shop.xml -o gen
//!     cargo new shop && cp shop.rs shop/src/main.rs && cd shop && cargo add --path ../gen/pem_shop
//!     cargo build --release && pem record -- target/release/shop
use pem_shop::{notify_shop_sale, Payment, ShopServeScope};

fn serve(customer: u32) {
    const GOODS: [&str; 3] = ["tea", "Käse", "bread"];
    let _interval = ShopServeScope::new(customer); // ends with this block
    let item = GOODS[customer as usize % GOODS.len()];

    notify_shop_sale(250 * u64::from(customer), customer, Payment::CARD, item);
}

fn main() {
    let argument = std::env::args().nth(1);
    let customers = argument.map_or(3, |word| word.parse().expect("a number of customers"));

    (1..=customers).for_each(serve);
    println!("{customers} customers served");
}
