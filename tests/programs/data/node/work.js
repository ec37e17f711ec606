// SPDX-License-Identifier: Apache-2.0
// A client through the proxy in both ways (absolute URL and CONNECT, kept alive), workers, child processes.
const { execFileSync, fork, spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');

const page = `http://127.0.0.1:${process.env.ORIGIN}/file.txt`;
const proxy = { host: '127.0.0.1', port: process.env.PROXY_PORT };

function body(request) {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('response', async (response) => {
      let text = '';
      for await (const part of response) text += part;
      resolve(text);
    });
    request.end();
  });
}

// The way of proxy agents: a tunnel first, then an ordinary request over its socket.
class Tunnel extends http.Agent {
  createConnection(options, done) {
    const request = http.request({ ...proxy, method: 'CONNECT', path: `${options.host}:${options.port}` });
    request.on('connect', (response, socket) => done(null, socket));
    request.on('error', done);
    request.end();
  }
}

function worker(data) {
  return new Promise((resolve, reject) => {
    const thread = new Worker(__filename, { workerData: data });
    thread.on('message', resolve);
    thread.on('error', reject);
  });
}

async function main() {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  const pages = await Promise.all([...Array(8)].map(() => body(http.request({ ...proxy, path: page, agent }))));
  agent.destroy();
  if (!pages.every((text) => text === pages[0])) throw new Error('the pages differ');
  console.log('agent:', pages[0].trim());

  console.log('tunnel:', (await body(http.request(page, { agent: new Tunnel() }))).trim());

  // A worker has its own loop, and asks for itself.
  const shared = new Int32Array(new SharedArrayBuffer(4));
  const threads = await Promise.all([1, 2, 3, 4].map((n) => worker({ n, shared })));
  console.log('workers:', threads.map((text) => text.trim()).join(','), Atomics.load(shared, 0));

  console.log('exec:', execFileSync('sh', ['-c', 'echo one | tr a-z A-Z'], { encoding: 'utf8' }).trim());
  const child = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end('two');
  let text = '';
  for await (const part of child.stdout) text += part;
  console.log('spawn:', text);
  const other = fork(__filename, ['forked']);
  console.log('fork:', await new Promise((resolve) => other.on('message', resolve)));

  await fs.promises.writeFile('out.txt', 'written');
  const copied = fs.promises.copyFile('out.txt', 'copy.txt').then(() => fs.promises.readFile('copy.txt', 'utf8'));
  console.log('files:', await copied);
}

if (!isMainThread) {
  Atomics.add(workerData.shared, 0, workerData.n);
  body(http.request({ ...proxy, path: page })).then((text) => parentPort.postMessage(text));
} else if (process.argv[2] === 'forked') {
  process.send('hello from ' + process.argv[2], () => process.disconnect());
} else {
  main().catch((error) => { console.error(error); process.exit(1); });
}
