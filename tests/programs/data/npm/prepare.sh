#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Outside: a package for the origin, and a lock file that names it.
set -e
mkdir -p package
echo '{"name":"greet","version":"1.0.0","main":"index.js","scripts":{"install":"node install.js"}}' >package/package.json
echo 'module.exports = (name) => `greetings, ${name}`;' >package/index.js
echo 'require("node:fs").writeFileSync("built.js", "module.exports = 42;");' >package/install.js
tar czf "$SERVED/greet-1.0.0.tgz" package
rm -r package
hash=$(openssl dgst -sha512 -binary "$SERVED/greet-1.0.0.tgz" | base64 -w0)
lock() {
  mkdir -p "$1"
  echo '{"name":"sample","version":"1.0.0","dependencies":{"greet":"1.0.0"}}' >"$1/package.json"
  cat >"$1/package-lock.json" <<END
{"name":"sample","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{
"":{"name":"sample","version":"1.0.0","dependencies":{"greet":"1.0.0"}},
"node_modules/greet":{"version":"1.0.0","resolved":"http://127.0.0.1:$2/greet-1.0.0.tgz","integrity":"sha512-$hash",
"hasInstallScript":true}}}
END
}
lock through "$ORIGIN"
lock past TARGET
