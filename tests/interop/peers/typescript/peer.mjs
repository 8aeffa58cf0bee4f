// One process of the TypeScript SDK: an executor where a queue is named, and a client always.
//
// Its one argument is a JSON object of url, app, version, queue and the folder of the SDK. It answers each JSON line with one.

import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';

const given = JSON.parse(process.argv[2]);
const sdk = createRequire(`${given.sdk}/package.json`)('@dbos-inc/dbos-sdk');
const { ConfiguredInstance, DBOS, DBOSClient } = sdk;
const RESULT_POLL_MS = 50;

class Desk extends ConfiguredInstance {
  async initialize() {}
  async open(text) {
    return `${this.name}:${text}`;
  }
}

function register() {
  const double = DBOS.registerStep(async (number) => 2 * number, { name: 'double' });
  const workflows = {
    echo: async (value) => value,
    join: async (text, number) => `${text}${number}`,
    nothing: async () => undefined,
    refuse: async (reason) => {
      throw Object.assign(new Error(reason), { name: 'Declined', code: 42, data: { reason } });
    },
    hold: async (seconds) => {
      await DBOS.sleep(seconds * 1000);
      return 'held';
    },
    steps: async (number) => (await double(number)) + (await double(number)),
  };
  for (const [name, body] of Object.entries(workflows)) {
    DBOS.registerWorkflow(body, { name });
  }
  Desk.prototype.open = DBOS.registerWorkflow(Desk.prototype.open, { name: 'open', ctorOrProto: Desk.prototype });
  new Desk('east');
}

async function launch() {
  register();
  DBOS.setConfig({
    name: given.app,
    systemDatabaseUrl: given.url,
    applicationVersion: given.version,
    logLevel: 'error',
    runAdminServer: false,
    listenQueues: [given.queue],
  });
  await DBOS.launch();
  await DBOS.registerQueue(given.queue, { minPollingIntervalMs: 50 });
}

async function enqueue(client, asked) {
  const names = {
    id: 'workflowID',
    class: 'workflowClassName',
    instance: 'workflowConfigName',
    version: 'appVersion',
    app: 'applicationName',
  };
  const options = { workflowName: asked.workflow, queueName: asked.queue };
  for (const [short, long] of Object.entries(names)) {
    if (short in asked) options[long] = asked[short];
  }
  const args = asked.args ?? [];
  const handle = asked.native
    ? await client.enqueue(options, ...args)
    : await client.enqueuePortable(options, args, asked.named);
  return { id: handle.workflowID };
}

async function result(client, asked) {
  try {
    const value = await client.retrieveWorkflow(asked.id).getResult({ pollingIntervalMs: RESULT_POLL_MS });
    return { value: value ?? null };
  } catch (error) {
    const { name, message, code, data } = error;
    return { error: { name, message, code: code ?? null, data: data ?? null } };
  }
}

async function status(client, asked) {
  return { status: (await client.retrieveWorkflow(asked.id).getStatus()).status };
}

function say(answer) {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

async function main() {
  if (given.queue) await launch();
  const client = await DBOSClient.create({ systemDatabaseUrl: given.url });
  const answers = { enqueue, result, status };
  say({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    try {
      say(await answers[asked.do](client, asked));
    } catch (error) {
      say({ failed: `${error.name}: ${error.message}` });
    }
  }
  await client.destroy();
  if (given.queue) await DBOS.shutdown();
}

await main();
