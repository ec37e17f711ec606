// SPDX-License-Identifier: Apache-2.0
fn main() {
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || n * n)).collect();
    let sum: i32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{}, {} {}", greet::greet("cargo"), env!("BUILT"), sum);
}
