// Tells an example that it is run, and not imported by a test.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Whether a module is the program that Node was started with. */
export function isMain(url: string): boolean {
  const [, main] = process.argv;
  return main !== undefined && realpathSync(main) === fileURLToPath(url);
}
