// What the tests share: one server, whose time jumps, for each file, and a namespace for each test.
import { after, before } from 'node:test';
import { Env, Server } from '@kagzi/sdk/testing';

let server: Server;

before(async () => {
  server = await Server.start({ clock: true });
});

after(() => server.close());

/** Runs a test with an Env of its own. */
export function withEnv(test: (env: Env) => Promise<void>): () => Promise<void> {
  return async () => {
    const env = new Env(server);
    try {
      await test(env);
    } finally {
      await env.close();
    }
  };
}
