// Builds the workflows of the tests with the SDK's own compiler, as its command line does.
import { StandaloneBuilder } from '@workflow/builders';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The root of this package. */
export const PACKAGE = join(import.meta.dirname, '..', '..', '..');

/** Builds the app in a folder of its own and returns that. */
export async function buildApp(): Promise<string> {
  const folder = join(PACKAGE, 'build', 'app');
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(PACKAGE, 'tests', 'app', 'workflows'), join(folder, 'workflows'), { recursive: true });
  // The compiler names files of the package `workflow`, which brings the integrations of eight frameworks along.
  const stand = join(folder, 'node_modules', 'workflow');
  mkdirSync(join(stand, 'internal'), { recursive: true });
  const files = {
    './runtime.js': "export * from '@workflow/core/runtime';\n",
    './internal/private.js': "export * from '@workflow/core/private';\n",
    './internal/builtins.js': 'export {};\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(stand, name), text);
  const exports = Object.fromEntries(Object.keys(files).map((name) => [name.slice(0, -3), name]));
  const about = { name: 'workflow', version: '4.8.9', type: 'module', exports };
  writeFileSync(join(stand, 'package.json'), JSON.stringify(about));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'app', type: 'module' }));
  const said = console.log;
  console.log = () => undefined; // the compiler's progress
  try {
    const paths = { stepsBundlePath: 'step.cjs', workflowsBundlePath: 'flow.cjs', webhookBundlePath: 'webhook.mjs' };
    await new StandaloneBuilder({ buildTarget: 'standalone', dirs: ['.'], workingDir: folder, ...paths }).build();
  } finally {
    console.log = said;
  }
  return folder;
}
