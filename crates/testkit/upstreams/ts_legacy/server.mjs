// An upstream in the tests of our gateway: the official TypeScript SDK 1.x, which speaks up to
// 2025-11-25, over HTTP with sessions. Prints where it listens, and ends when its standard input
// does.

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const HANG_MS = 600_000;
const READS = { readOnlyHint: true };

const writtenTexts = [];
let underWay = 0;

function text(text) {
  return { content: [{ type: 'text', text }] };
}

async function count({ steps }, extra) {
  const progressToken = extra._meta?.progressToken;
  for (let step = 1; step <= steps && progressToken !== undefined; step += 1) {
    const params = { progressToken, progress: step, total: steps };
    await extra.sendNotification({ method: 'notifications/progress', params });
  }
  return text(`counted to ${steps}`);
}

async function hang(extra) {
  underWay += 1;
  try {
    await sleep(HANG_MS, undefined, { signal: extra.signal });
    return text('at last');
  } finally {
    underWay -= 1;
  }
}

function newServer() {
  const server = new McpServer({ name: 'ts_legacy', version: '1.0.0' });
  const reads = (name, description, inputSchema, call, more = {}) =>
    server.registerTool(name, { description, inputSchema, annotations: READS, ...more }, call);

  reads('greet', 'Greets.', { name: z.string() }, ({ name }) => text(`Hello, ${name}!`));
  const add = ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } });
  const numbers = { a: z.number().int(), b: z.number().int() };
  reads('add', 'Adds two numbers.', numbers, add, { outputSchema: { sum: z.number() } });
  reads('count', 'Tells its progress with each step.', { steps: z.number().int() }, count);
  server.registerTool('ask', { description: 'Asks a person for a name.' }, async () => {
    const requestedSchema = {
      type: 'object', properties: { name: { type: 'string' } }, required: ['name'],
    };
    const params = { mode: 'form', message: 'What is your name?', requestedSchema };
    const answer = await server.server.elicitInput(params);
    const accepted = answer.action === 'accept';
    return text(accepted ? `Hello, ${answer.content.name}!` : `no name: ${answer.action}`);
  });
  const writing = { description: 'Keeps a text.', inputSchema: { text: z.string() } };
  server.registerTool('write', writing, (kept) => {
    writtenTexts.push(kept.text);
    return text(`${writtenTexts.length} texts`);
  });
  reads('written', 'Says which texts were kept.', undefined, () => text(writtenTexts.join(', ')));
  reads('hang', 'Answers after ten minutes.', undefined, hang);
  reads('under_way', 'Says how many calls hang.', undefined, () => text(`${underWay}`));
  reads('fail', 'Fails by design.', undefined, () => {
    throw new Error('this tool fails by design');
  });
  server.registerResource('note', 'note://ts_legacy/one', { description: 'A note.' }, (uri) => ({
    contents: [{ uri: uri.href, text: 'the first note' }],
  }));
  const saying = { description: 'Says a word.', argsSchema: { word: z.string() } };
  server.registerPrompt('say', saying, ({ word }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Say ${word}.` } }],
  }));
  return server;
}

// One transport and one server for each session, as the SDK's own examples do.
const transports = new Map();

async function transportOf(request) {
  const known = transports.get(request.headers['mcp-session-id']);
  if (known !== undefined) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  transport.onclose = () => transports.delete(transport.sessionId);
  await newServer().connect(transport);
  return transport;
}

const web = http.createServer(async (request, response) => {
  const transport = await transportOf(request);
  await transport.handleRequest(request, response);
});
web.listen(0, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${web.address().port}/mcp`);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
