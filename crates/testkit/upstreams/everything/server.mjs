// An upstream in the tests of our gateway: `@modelcontextprotocol/server-everything` from npm, over
// HTTP with sessions. It takes a port that it is told, on all addresses of the machine; here it
// gets a free one on this machine only. Prints where it listens, and ends when its standard input
// does.

import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function onThisMachine(...words) {
  const heard = words.find((word) => typeof word === 'function');
  return listen.call(this, 0, '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${this.address().port}/mcp`);
    heard?.call(this);
  });
};
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
process.argv[2] = 'streamableHttp';
await import('./node_modules/@modelcontextprotocol/server-everything/dist/index.js');
