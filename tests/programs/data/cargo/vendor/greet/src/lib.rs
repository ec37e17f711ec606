// SPDX-License-Identifier: Apache-2.0
pub fn greet(name: &str) -> String {
    format!("greetings, {name}")
}
