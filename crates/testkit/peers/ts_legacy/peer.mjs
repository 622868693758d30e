// A peer in the tests of our MCP server: the official TypeScript SDK 1.x, which speaks up to
// 2025-11-25.
//
// usage: peer.mjs --url URL | peer.mjs --stdio COMMAND [ARG ..]
//
// Prints one line per check and ends with 1 when one failed.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

const DEADLINE_MS = 1_500_000;
const CHECK_DEADLINE_MS = 240_000;
// A call that nobody cancels takes longer than a cancelled one may.
const SLOW_S = 100;
const CANCEL_DEADLINE_MS = 80_000;
const VERSION = '2025-11-25';
const INVALID_PARAMS = -32602;
const RESOURCE_NOT_FOUND = -32002;

// What a person would fill in, by the name of the field.
const FORM = { username: 'testuser', email: 'test@example.com', name: 'Alice', confirm: true };

// What the client's side answers, and what it heard.
const answers = { action: 'accept', log: [], toolChanges: 0, updated: [] };

function filled(schema) {
  return Object.fromEntries(Object.keys(schema.properties).map((name) => [name, FORM[name]]));
}

function newClient() {
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: 'ts-legacy', version: '1.0.0' }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) =>
    answers.action === 'accept'
      ? { action: 'accept', content: filled(params.requestedSchema) }
      : { action: answers.action },
  );
  client.setRequestHandler(CreateMessageRequestSchema, async () => ({
    role: 'assistant',
    content: { type: 'text', text: 'said by the model' },
    model: 'test-model',
  }));
  client.setRequestHandler(ListRootsRequestSchema, async () => ({
    roots: [{ uri: 'file:///test/root', name: 'Test Root' }],
  }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    answers.log.push(params.data);
  });
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    answers.toolChanges += 1;
  });
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
    answers.updated.push(params.uri);
  });
  return client;
}

async function allOf(list, items) {
  const found = [];
  let cursor;
  do {
    const page = await list({ cursor });
    found.push(...page[items]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

const call = (client, name, args = {}, options) =>
  client.callTool({ name, arguments: args }, undefined, options);
const textOf = (result) => result.content[0].text;

async function until(holds) {
  while (!(await holds())) await sleep(20);
}

const checks = {
  async lists(client) {
    const tools = await allOf((params) => client.listTools(params), 'tools');
    const names = tools.map((tool) => tool.name);
    for (const name of ['test_simple_text', 'slow_compute', 'confirm_delete']) {
      assert.ok(names.includes(name), `${name} in ${names}`);
    }
    // Before 2026-07-28 an output schema describes an object.
    const schemas = tools.map((tool) => tool.outputSchema).filter(Boolean);
    assert.ok(schemas.length > 0 && schemas.every((schema) => schema.type === 'object'));
    const prompts = await allOf((params) => client.listPrompts(params), 'prompts');
    assert.ok(prompts.some((prompt) => prompt.name === 'test_simple_prompt'));
    const resources = await allOf((params) => client.listResources(params), 'resources');
    assert.ok(resources.some((resource) => resource.uri === 'test://static-text'));
    const templates = await allOf(
      (params) => client.listResourceTemplates(params),
      'resourceTemplates',
    );
    assert.ok(templates.some((template) => template.uriTemplate === 'test://template/{id}/data'));
  },

  async ping(client) {
    await client.ping();
  },

  async calls(client) {
    const result = await call(client, 'test_simple_text');
    assert.equal(textOf(result), 'This is a simple text response for testing.');
    const mixed = await call(client, 'test_multiple_content_types');
    assert.deepEqual(
      mixed.content.map((block) => block.type),
      ['text', 'image', 'resource'],
    );
  },

  async errors(client) {
    const failed = await call(client, 'test_error_handling');
    assert.ok(failed.isError && textOf(failed).includes('intentionally'), textOf(failed));
    const misfit = await call(client, 'greet', { name: 5 });
    assert.ok(misfit.isError && textOf(misfit).includes('name'), textOf(misfit));
    await assert.rejects(call(client, 'no_such_tool'), { code: INVALID_PARAMS });
  },

  // The SDK itself holds the content against the schema.
  async structured(client) {
    const sum = await call(client, 'test_structured_content', { a: 1, b: 2 });
    assert.deepEqual(sum.structuredContent, { sum: 3 });
    const bare = await call(client, 'test_bare_value', { a: 1, b: 2 });
    assert.deepEqual(bare.structuredContent, { result: 3 });
  },

  async resources(client) {
    const text = await client.readResource({ uri: 'test://static-text' });
    assert.ok(text.contents[0].text.startsWith('This is the content'));
    const data = await client.readResource({ uri: 'test://template/7/data' });
    assert.equal(JSON.parse(data.contents[0].text).id, '7');
    await assert.rejects(client.readResource({ uri: 'test://nothing-here' }), {
      code: RESOURCE_NOT_FOUND,
    });
  },

  async prompts(client) {
    const name = 'test_prompt_with_arguments';
    const prompt = await client.getPrompt({ name, arguments: { arg1: 'one', arg2: 'two' } });
    assert.ok(prompt.messages[0].content.text.includes("arg1='one', arg2='two'"));
    const completed = await client.complete({
      ref: { type: 'ref/prompt', name },
      argument: { name: 'arg1', value: 'par' },
    });
    assert.deepEqual(completed.completion.values, ['paris', 'park', 'party']);
  },

  async progress(client) {
    const heard = [];
    const onprogress = ({ progress, total }) => heard.push([progress, total]);
    await call(client, 'test_tool_with_progress', {}, { onprogress });
    assert.deepEqual(heard, [
      [0, 100],
      [50, 100],
      [100, 100],
    ]);
  },

  async logging(client) {
    await client.setLoggingLevel('info');
    await call(client, 'test_tool_with_logging');
    assert.equal(answers.log.length, 3, String(answers.log));
    await client.setLoggingLevel('error');
    await call(client, 'test_tool_with_logging');
    assert.equal(answers.log.length, 3, String(answers.log));
  },

  async elicitation(client) {
    const accepted = await call(client, 'test_elicitation', { message: 'Who are you?' });
    assert.ok(textOf(accepted).includes('testuser'), textOf(accepted));
    answers.action = 'decline';
    const declined = await call(client, 'test_elicitation', { message: 'Who are you?' });
    answers.action = 'accept';
    assert.ok(textOf(declined).includes('decline'), textOf(declined));
  },

  async severalInputs(client) {
    const all = await call(client, 'test_input_required_result_multiple_inputs');
    assert.equal(textOf(all), 'said by the model Alice works in 1 folders.');
    const turn = await call(client, 'test_sampling', { prompt: 'Say it' });
    assert.equal(textOf(turn), 'LLM response: said by the model');
  },

  async planThatAsks(client) {
    const deleted = await call(client, 'confirm_delete', { filename: 'peer.txt' });
    assert.equal(textOf(deleted), 'Deleted peer.txt.');
    answers.action = 'decline';
    const kept = await call(client, 'confirm_delete', { filename: 'peer.txt' });
    answers.action = 'accept';
    assert.equal(textOf(kept), 'Kept peer.txt.');
  },

  async changes(client) {
    await client.subscribeResource({ uri: 'test://watched-resource' });
    await call(client, 'test_touch_resource');
    await until(() => answers.updated.includes('test://watched-resource'));
    await client.unsubscribeResource({ uri: 'test://watched-resource' });
    await call(client, 'test_trigger_tool_change');
    await until(() => answers.toolChanges > 0);
  },

  async cancel(client) {
    const underWay = async () =>
      (await call(client, 'calls_under_way')).structuredContent.count;
    const before = await underWay();
    const abort = new AbortController();
    const slow = call(client, 'slow_compute', { seconds: SLOW_S }, { signal: abort.signal });
    const ended = assert.rejects(slow);
    await until(async () => (await underWay()) > before);
    abort.abort('no longer needed');
    await ended;
    const gone = until(async () => (await underWay()) === before);
    await within(CANCEL_DEADLINE_MS, 'the cancellation', gone);
    assert.equal(textOf(await call(client, 'greet', { name: 'again' })), 'Hello, again!');
  },
};

async function within(ms, what, work) {
  const timer = new AbortController();
  const late = sleep(ms, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`${what} took longer than ${ms} ms`);
  });
  // The one that loses is not waited for.
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
  }
}

async function run(words) {
  const transport =
    words[0] === '--url'
      ? new StreamableHTTPClientTransport(new URL(words[1]))
      : new StdioClientTransport({ command: words[1], args: words.slice(2) });
  const client = newClient();
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, 'waypost');
  if (words[0] === '--url') assert.equal(transport.protocolVersion, VERSION);
  console.log('ok handshake');
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await within(CHECK_DEADLINE_MS, name, check(client));
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.stack ?? error}`);
    }
  }
  if (words[0] === '--url') await transport.terminateSession();
  await client.close();
  return failed;
}

const words = process.argv.slice(2);
if (words.length < 2 || !['--url', '--stdio'].includes(words[0])) {
  console.error('usage: peer.mjs --url URL | peer.mjs --stdio COMMAND [ARG ..]');
  process.exit(2);
}
try {
  process.exit((await within(DEADLINE_MS, 'everything', run(words))) === 0 ? 0 : 1);
} catch (error) {
  console.log(`FAILED: ${error.stack ?? error}`);
  process.exit(1);
}
