// SPDX-License-Identifier: Apache-2.0
const http = require('node:http');
http.get(`http://127.0.0.1:${process.env.TARGET}/`, (response) => response.pipe(process.stdout))
  .on('error', (error) => { console.error(error.message); process.exit(3); });
