#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
mkdir -p "direct-$TARGET/.cargo" "direct-$TARGET/src" && cd "direct-$TARGET" || exit
printf '[package]\nname = "sample"\nversion = "1.0.0"\n[dependencies]\ngreet = "1.0.0"\n' >Cargo.toml
echo >src/lib.rs
printf '[source.crates-io]\nreplace-with = "near"\n[source.near]\nregistry = "http://127.0.0.1:%s/index"\n' "$TARGET" >.cargo/config.toml
exec cargo fetch
