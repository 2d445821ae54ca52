// The smallest program: a workflow of two steps with a pause between them.
//
// node build/examples/hello.js              runs a worker until SIGTERM or Ctrl-C
// node build/examples/hello.js start NAME   starts a run and waits for its result
import { Client, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

export interface Greeting {
  text: string;
  /** The idempotency key under which it was sent. */
  key: string;
}

export const greet = workflow('greet', { queue: 'hello' }, async (run, name: string): Promise<Greeting> => {
  const text = await run.step('compose', () => `hello ${name}`);
  await run.sleep('pause', '10s'); // holds no worker, survives restarts
  // Stands for a mail server. A real one would refuse a second mail with the same key.
  return run.step('send', (step) => ({ text, key: step.idempotencyKey }), { retry: { attempts: 5 } });
});

if (isMain(import.meta.url)) {
  const [command, name = ''] = process.argv.slice(2);
  if (command !== 'start') await serve([greet]);
  else {
    const client = new Client();
    console.log((await (await client.start(greet, name)).result()).text);
    client.close();
  }
}
