// SPDX-License-Identifier: Apache-2.0
fn main() {
    println!("cargo:rustc-env=BUILT=by a build script");
}
