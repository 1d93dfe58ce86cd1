// SPDX-License-Identifier: MIT
//! polyglot.rs - raises every type of field N times; the same in each language, see tests/e2e/polyglot.py
use pem_polyglot::{Access, Language, PolyglotWorkScope};

const L: Language = Language::RUST;

fn numbers(i: u32) {
    let s = i as i32;
    let big = i64::from(s) * 1000000007;

    pem_polyglot::notify_polyglot_numbers(
        L,
        -(s % 100) as i8,
        i as u8,
        -(s % 30000) as i16,
        i as u16,
        -(s % 1000000) * 2,
        i.wrapping_mul(3),
        -big,
        big as u64,
        i as f32 / 4.0,
        f64::from(i) / 8.0,
        0x1000 + u64::from(i) * 16,
        Access((i % 8) as u16),
    );
}

fn texts(i: u32) {
    let samples: Vec<i32> = (0..i % 9).map(|k| (k * i) as i32 - 4).collect();

    pem_polyglot::notify_polyglot_texts(L, &format!("näme-{i}"), &samples, &format!("t{}", i % 10));
}

fn shapes(i: u32) {
    let (x, weight) = (f64::from(i), (i % 1000) as u16);
    let weights = [weight, weight + 1, weight + 2];

    pem_polyglot::notify_polyglot_shapes(L, i as u8, x * 0.5, x * 0.25, x * 1.5, x * 1.25, &weights, i);
}

fn main() {
    let n = std::env::args().nth(1).map_or(0, |word| word.parse().expect("a number"));

    for i in 0..n {
        let _work = PolyglotWorkScope::new(L, i);

        numbers(i);
        texts(i);
        shapes(i);
    }
}
