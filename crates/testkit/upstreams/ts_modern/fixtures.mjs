// An upstream in the tests of our gateway: what the official conformance suite wants a server to
// have, made with the official TypeScript SDK 2.x.
//
// usage: fixtures.mjs both | fixtures.mjs handshake
//
// `both` serves 2026-07-28 and the versions with a handshake at one address, `handshake` only the
// latter. Prints where it listens, and ends when its standard input does.

import { randomBytes, randomUUID } from 'node:crypto';
import http from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  completable,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  hostHeaderValidationResponse,
  inputRequired,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

const PAUSE_MS = 50;
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const STRING = { type: 'string' };

// The state of a question comes back through the client, which must not be able to change it.
const states = createRequestStateCodec({ key: randomBytes(32), ttlSeconds: 600 });
// How often each list was changed. It is a part of the list, so each change is one.
const changed = { tools: 0, prompts: 0 };

const text = (text) => ({ content: [{ type: 'text', text }] });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const resource = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const object = (properties, required = Object.keys(properties)) => ({
  type: 'object', properties, required,
});
const user = (content) => ({ role: 'user', content });
const said = (text) => user({ type: 'text', text });

// Requests that a stateless client answers with its next call.
const form = (message, properties) =>
  inputRequired.elicit({ message, requestedSchema: object(properties) });
const turn = (prompt, maxTokens) =>
  inputRequired.createMessage({ messages: [said(prompt)], maxTokens });

// What the client filled in, if it is a text.
function filled(ctx, key, name) {
  const value = ctx.mcpReq.inputResponses?.[key]?.content?.[name];
  return typeof value === 'string' ? value : undefined;
}

const given = (ctx, key) => ctx.mcpReq.inputResponses?.[key];

// Requests that only a client with a handshake can be sent, in the middle of a call.
async function push(ctx, method, params) {
  return ctx.mcpReq.send({ method, params });
}

async function elicited(ctx, message, requestedSchema) {
  const answer = await push(ctx, 'elicitation/create', { message, requestedSchema });
  return text(`Answered: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
}

const DEFAULTS = object(
  {
    name: { ...STRING, default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { ...STRING, enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  [],
);

const OPTIONS = ['option1', 'option2', 'option3'];
const titled = (word) => [
  { const: 'value1', title: `First ${word}` },
  { const: 'value2', title: `Second ${word}` },
  { const: 'value3', title: `Third ${word}` },
];
const CHOICES = object(
  {
    untitledSingle: { ...STRING, enum: OPTIONS },
    titledSingle: { ...STRING, oneOf: titled('Option') },
    legacyEnum: {
      ...STRING,
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { ...STRING, enum: OPTIONS } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
  },
  [],
);

const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: STRING, city: STRING },
    },
  },
  properties: {
    name: STRING,
    address: { $ref: '#/$defs/address' },
    contactMethod: { ...STRING, enum: ['phone', 'email'] },
    phone: STRING,
    email: STRING,
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

async function tellProgress(_, ctx) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
      await ctx.mcpReq.notify({ method: 'notifications/progress', params });
    }
    await sleep(PAUSE_MS);
  }
  return text('Progress was told three times.');
}

async function log(_, ctx) {
  for (const line of ['started', 'at work', 'done']) {
    await ctx.mcpReq.log('info', `Tool execution: ${line}`);
    await sleep(PAUSE_MS);
  }
  return text('Three lines were logged.');
}

async function confirmed(_, ctx) {
  if (given(ctx, 'confirm') !== undefined && ctx.mcpReq.requestState() !== undefined) {
    return text('state-ok');
  }
  const confirm = form('Please confirm', { ok: { type: 'boolean' } });
  const requestState = await states.mint({ asked: 'confirm' });
  return inputRequired({ inputRequests: { confirm }, requestState });
}

async function severalInputs(_, ctx) {
  const keys = ['user_name', 'greeting', 'client_roots'];
  if (keys.every((key) => given(ctx, key) !== undefined)) return text('All of it was given.');
  const inputRequests = {
    user_name: form('What is your name?', { name: STRING }),
    greeting: turn('Generate a greeting', 50),
    client_roots: inputRequired.listRoots(),
  };
  return inputRequired({ inputRequests, requestState: await states.mint({ asked: 'all' }) });
}

async function rounds(_, ctx) {
  const { round = 0, name } = ctx.mcpReq.requestState() ?? {};
  if (round === 2) return text(`${name} likes ${filled(ctx, 'step2', 'color')}.`);
  const answered = filled(ctx, 'step1', 'name');
  if (round === 1 && answered !== undefined) {
    const step2 = form('Step 2: What is your favorite color?', { color: STRING });
    const requestState = await states.mint({ round: 2, name: answered });
    return inputRequired({ inputRequests: { step2 }, requestState });
  }
  const step1 = form('Step 1: What is your name?', { name: STRING });
  return inputRequired({ inputRequests: { step1 }, requestState: await states.mint({ round: 1 }) });
}

// Asks for what the client can give, and for nothing else.
async function whatever(_, ctx) {
  if (given(ctx, 'user_name') !== undefined || given(ctx, 'turn') !== undefined) {
    return text('Something was given.');
  }
  const can = ctx.mcpReq.envelope?.[CAPABILITIES] ?? {};
  const inputRequests = {};
  if (can.elicitation !== undefined) {
    inputRequests.user_name = form('What is your name?', { name: STRING });
  }
  if (can.sampling !== undefined) inputRequests.turn = turn('Say anything', 10);
  if (Object.keys(inputRequests).length === 0) return text('There is no one to ask.');
  return inputRequired({ inputRequests });
}

// A tool that wants one thing and then answers with it.
function wanting(key, request, answer) {
  return async (_, ctx) => {
    const answered = answer(ctx);
    if (answered !== undefined) return text(answered);
    return inputRequired({ inputRequests: { [key]: request } });
  };
}

function greeting(ctx) {
  const name = filled(ctx, 'user_name', 'name');
  return name === undefined ? undefined : `Hello, ${name}!`;
}

const modelSaid = (key) => (ctx) => {
  const answer = given(ctx, key);
  return answer === undefined ? undefined : `The model says: ${JSON.stringify(answer.content)}`;
};

function foldersOf(ctx) {
  const answer = given(ctx, 'client_roots');
  return answer === undefined ? undefined : `${answer.roots.length} folders`;
}

function toolsOf(server) {
  return (name, description, call, properties = {}) => {
    const inputSchema = fromJsonSchema(object(properties));
    server.registerTool(name, { description, inputSchema }, call);
  };
}

function addTools(server) {
  const tool = toolsOf(server);
  const answering = (name, description, content) =>
    tool(name, description, () => ({ content }));

  answering('test_simple_text', 'Answers a text.', [
    { type: 'text', text: 'This is a simple text response for testing.' },
  ]);
  answering('test_image_content', 'Answers a picture.', [image]);
  answering('test_audio_content', 'Answers a sound.', [
    { type: 'audio', data: WAV, mimeType: 'audio/wav' },
  ]);
  answering('test_embedded_resource', 'Answers a resource inside its content.', [
    resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ]);
  answering('test_multiple_content_types', 'Answers a text, a picture and a resource.', [
    { type: 'text', text: 'Multiple content types test:' },
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ]);
  tool('test_error_handling', 'Fails, always.', () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  tool('test_tool_with_progress', 'Tells its progress.', tellProgress);
  tool('test_tool_with_logging', 'Writes three lines to the log of its client.', log);
  tool('test_logging_tool', 'Writes three lines to the log of its client.', log);
  server.registerTool(
    'json_schema_2020_12_tool',
    {
      description: 'Tool with JSON Schema 2020-12 features',
      inputSchema: fromJsonSchema(SCHEMA_2020_12),
    },
    (args) => text(`taken: ${JSON.stringify(args)}`),
  );
  tool('test_header_parameter', 'Takes an argument that stands in a header too.',
    ({ region }) => text(`region: ${region}`),
    { region: { ...STRING, 'x-mcp-header': 'Region' } });
}

function addToolsThatPush(server) {
  const tool = toolsOf(server);
  tool('test_sampling', 'Hands a prompt to the model of its caller.', async ({ prompt }, ctx) => {
    const params = { messages: [said(prompt)], maxTokens: 100 };
    const answer = await push(ctx, 'sampling/createMessage', params);
    return text(`LLM response: ${answer.content.text}`);
  }, { prompt: STRING });
  // The suite's answer does not fit this form; whether that matters is for this server to say.
  tool('test_elicitation', 'Asks a person.',
    ({ message }, ctx) => elicited(ctx, message, object({ response: STRING })),
    { message: STRING });
  tool('test_elicitation_sep1034_defaults', 'Asks with a default in each field.',
    (_, ctx) => elicited(ctx, 'Please fill in the form', DEFAULTS));
  tool('test_elicitation_sep1330_enums', 'Asks with each kind of choice.',
    (_, ctx) => elicited(ctx, 'Please fill in the form', CHOICES));
}

function addToolsThatWant(server) {
  const tool = toolsOf(server);
  const nameForm = form('What is your name?', { name: STRING });
  const prefix = 'test_input_required_result';
  tool(`${prefix}_elicitation`, 'Asks for a name and greets.',
    wanting('user_name', nameForm, greeting));
  tool(`${prefix}_sampling`, 'Asks the model of its caller for the capital of France.',
    wanting('capital', turn('What is the capital of France?', 100), modelSaid('capital')));
  tool(`${prefix}_list_roots`, 'Asks for the folders of its caller.',
    wanting('client_roots', inputRequired.listRoots(), foldersOf));
  tool(`${prefix}_request_state`, 'Asks for a confirmation and remembers it.', confirmed);
  tool(`${prefix}_tampered_state`, 'Asks for a confirmation and remembers it.', confirmed);
  tool(`${prefix}_multiple_inputs`, 'Asks for a name, a greeting and the folders.', severalInputs);
  tool(`${prefix}_multi_round`, 'Asks for a name, and after that for a colour.', rounds);
  tool(`${prefix}_capabilities`, 'Asks a person or a model, whichever there is.', whatever);
  tool('test_missing_capability', 'Needs the model of its caller.',
    wanting('turn', turn('Say anything', 10), modelSaid('turn')));
  tool('test_streaming_elicitation', 'Asks for a name and greets.',
    wanting('user_name', nameForm, greeting));
  tool('test_trigger_tool_change', 'Changes the list of tools.', () => {
    changed.tools += 1;
    modern.notify.toolsChanged();
    return text('changed');
  });
  tool('test_trigger_prompt_change', 'Changes the list of prompts.', () => {
    changed.prompts += 1;
    modern.notify.promptsChanged();
    return text('changed');
  });
  tool('test_changed_tool', `Was changed ${changed.tools} times.`, () => text('here'));
}

function addResources(server) {
  const add = (name, mimeType, contents) => {
    const uri = `test://${name}`;
    server.registerResource(name, uri, { description: `The resource ${name}.`, mimeType }, () => ({
      contents: [{ uri, mimeType, ...contents }],
    }));
  };
  add('static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  add('static-binary', 'image/png', { blob: PNG });
  add('watched-resource', 'text/plain', { text: 'Watched resource content' });
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  const mimeType = 'application/json';
  server.registerResource(
    'template',
    template,
    { description: 'A resource for each id.', mimeType },
    (uri, { id }) => {
      const data = { id, templateTest: true, data: `Data for ID: ${id}` };
      return { contents: [{ uri: uri.href, mimeType, text: JSON.stringify(data) }] };
    },
  );
}

function addPrompts(server) {
  server.registerPrompt('test_simple_prompt', { description: 'A text.' }, () => ({
    messages: [said('This is a simple prompt for testing.')],
  }));
  const words = ['paris', 'park', 'party'];
  const arg1 = completable(z.string(), (value) => words.filter((word) => word.startsWith(value)));
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'A text of two arguments.', argsSchema: z.object({ arg1, arg2: z.string() }) },
    (args) => ({
      messages: [said(`Prompt with arguments: arg1='${args.arg1}', arg2='${args.arg2}'`)],
    }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A resource.', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => ({
      messages: [
        user(resource(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
        said('Please process the embedded resource above.'),
      ],
    }),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'A picture.' }, () => ({
    messages: [user(image), said('Please analyze the image above.')],
  }));
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'Asks for its context.' },
    (ctx) => {
      const context = filled(ctx, 'user_context', 'context');
      if (context !== undefined) return { messages: [said(`Use this context: ${context}`)] };
      const user_context = form('What context should the prompt use?', { context: STRING });
      return inputRequired({ inputRequests: { user_context } });
    },
  );
  const description = `Was changed ${changed.prompts} times.`;
  server.registerPrompt('test_changed_prompt', { description }, () => ({ messages: [said('x')] }));
}

function newServer({ era }) {
  const lists = { listChanged: true };
  const capabilities = {
    tools: lists,
    prompts: lists,
    resources: { ...lists, subscribe: true },
    logging: {},
    completions: {},
  };
  const options = { capabilities, requestState: { verify: states.verify } };
  const server = new McpServer({ name: 'ts_fixtures', version: '1.0.0' }, options);
  addTools(server);
  addToolsThatPush(server);
  addToolsThatWant(server);
  addResources(server);
  addPrompts(server);
  if (era === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', () => ({}));
  }
  return server;
}

const modern = createMcpHandler(newServer, { legacy: 'reject' });
const sessions = new Map();

// One transport and one server for each session, as the SDK's own examples do.
async function withHandshake(request) {
  const id = request.headers.get('mcp-session-id');
  if (id !== null) {
    const known = sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    const error = { code: -32001, message: 'Session not found' };
    return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 404 });
  }
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await newServer({ era: 'legacy' }).connect(transport);
  return transport.handleRequest(request);
}

async function answer(request, isBoth) {
  const refused =
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins());
  if (refused) return refused;
  if (isBoth && !(await isLegacyRequest(request))) return modern.fetch(request);
  return withHandshake(request);
}

// The request as the web's standard has it; aborted when the client goes away.
async function webRequest(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of [value].flat()) headers.append(name, one);
  }
  const { method, url } = request;
  const body = method === 'POST' ? Buffer.concat(chunks) : undefined;
  const init = { method, headers, body, signal: gone.signal };
  return new Request(`http://${request.headers.host ?? '127.0.0.1'}${url}`, init);
}

async function serve(request, response, isBoth) {
  const answered = await answer(await webRequest(request, response), isBoth);
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  // A stream may have nothing to say for long.
  response.flushHeaders();
  if (answered.body === null) response.end();
  else await pipeline(Readable.fromWeb(answered.body), response);
}

const [eras] = process.argv.slice(2);
if (!['both', 'handshake'].includes(eras)) {
  console.error('usage: fixtures.mjs both | fixtures.mjs handshake');
  process.exit(2);
}
const web = http.createServer((request, response) => {
  // Whoever went away is not waited for.
  serve(request, response, eras === 'both').catch(() => response.destroy());
});
web.listen(0, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${web.address().port}/mcp`);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
