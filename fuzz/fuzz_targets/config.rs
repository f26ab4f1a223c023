#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| pgvet_fuzz::check::config(text));
