// SPDX-License-Identifier: MIT
// See rounds.c.
use std::io::Write;
fn main() {
    std::thread::spawn(|| loop {
        for i in 0..100usize {
            let mut block = vec![1u8; 16 + i * 37 % 2000];
            unsafe { std::ptr::write_volatile(block.as_mut_ptr(), 2) };
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    });
    let mut kept: Vec<Box<[u8]>> = Vec::with_capacity(1_000_000);
    for round in 1usize.. {
        for _ in 0..8 {
            kept.push(vec![(kept.len() % 251) as u8; 10000].into_boxed_slice());
        }
        let i = round * 7 % kept.len();
        let right = kept[i].iter().all(|byte| *byte == (i % 251) as u8);
        println!("ROUND {} LIVE {} {}", round, kept.len() * 10000, if right { "OK" } else { "WRONG" });
        std::io::stdout().flush().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
