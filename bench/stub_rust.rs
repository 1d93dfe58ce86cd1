// SPDX-License-Identifier: MIT
//! stub_rust.rs - Rust's loops of stub.c
use pem_bench::{notify_bench_disabled, notify_bench_log};

#[no_mangle]
pub extern "C" fn bench_log_rust(n: u64) {
    for i in 0..n {
        notify_bench_log(i, !i);
    }
}

#[no_mangle]
pub extern "C" fn bench_off_rust(n: u64) {
    for i in 0..n {
        notify_bench_disabled(i, !i);
    }
}
