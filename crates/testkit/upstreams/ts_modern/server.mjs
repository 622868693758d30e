// An upstream in the tests of our gateway: the official TypeScript SDK 2.x, which speaks
// 2026-07-28, over standard input and output.

import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer, fromJsonSchema, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const HANG_MS = 600_000;
const READS = { readOnlyHint: true };

const writtenTexts = [];
let underWay = 0;

function text(text) {
  return { content: [{ type: 'text', text }] };
}

function object(properties) {
  return fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
}

const STRING = { type: 'string' };
const INTEGER = { type: 'integer' };

async function count({ steps }, ctx) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  for (let step = 1; step <= steps && progressToken !== undefined; step += 1) {
    const params = { progressToken, progress: step, total: steps };
    await ctx.mcpReq.notify({ method: 'notifications/progress', params });
  }
  return text(`counted to ${steps}`);
}

async function ask(_, ctx) {
  const answer = ctx.mcpReq.inputResponses?.name;
  if (answer === undefined) {
    const requestedSchema = { type: 'object', properties: { name: STRING }, required: ['name'] };
    const form = inputRequired.elicit({ message: 'What is your name?', requestedSchema });
    return inputRequired({ inputRequests: { name: form }, requestState: 'asked' });
  }
  const accepted = answer.action === 'accept';
  return text(accepted ? `Hello, ${answer.content.name}!` : `no name: ${answer.action}`);
}

async function hang(_, ctx) {
  underWay += 1;
  try {
    await sleep(HANG_MS, undefined, { signal: ctx.mcpReq.signal });
    return text('at last');
  } finally {
    underWay -= 1;
  }
}

function newServer() {
  const server = new McpServer({ name: 'ts_modern', version: '1.0.0' });
  const reads = (name, description, inputSchema, call, more = {}) =>
    server.registerTool(name, { description, inputSchema, annotations: READS, ...more }, call);
  const writes = (name, description, inputSchema, call) =>
    server.registerTool(name, { description, inputSchema }, call);

  reads('greet', 'Greets.', object({ name: STRING }), ({ name }) => text(`Hello, ${name}!`));
  const add = ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } });
  const outputSchema = object({ sum: INTEGER });
  reads('add', 'Adds two numbers.', object({ a: INTEGER, b: INTEGER }), add, { outputSchema });
  reads('count', 'Tells its progress with each step.', object({ steps: INTEGER }), count);
  writes('ask', 'Asks a person for a name.', object({}), ask);
  writes('write', 'Keeps a text.', object({ text: STRING }), (kept) => {
    writtenTexts.push(kept.text);
    return text(`${writtenTexts.length} texts`);
  });
  reads('written', 'Says which texts were kept.', object({}), () => text(writtenTexts.join(', ')));
  reads('hang', 'Answers after ten minutes.', object({}), hang);
  reads('under_way', 'Says how many calls hang.', object({}), () => text(`${underWay}`));
  reads('fail', 'Fails by design.', object({}), () => {
    throw new Error('this tool fails by design');
  });
  server.registerResource('note', 'note://ts_modern/one', { description: 'A note.' }, (uri) => ({
    contents: [{ uri: uri.href, text: 'the first note' }],
  }));
  const argsSchema = object({ word: STRING });
  server.registerPrompt('say', { description: 'Says a word.', argsSchema }, ({ word }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Say ${word}.` } }],
  }));
  return server;
}

serveStdio(newServer);
