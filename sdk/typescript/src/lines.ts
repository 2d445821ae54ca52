// Lines of the user's code, for messages.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package's code. */
export const SDK = dirname(fileURLToPath(import.meta.url));

/** Returns the innermost line of the user's code on the stack, for messages. */
export function userLine(): string {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 50; // the SDK's own frames are on top
  const { stack = '' } = new Error();
  Error.stackTraceLimit = limit;
  return lineOf(stack) ?? 'an unknown line';
}

/** Returns the innermost line of a stack that is the user's. */
export function lineOf(stack: string): string | undefined {
  for (const line of stack.split('\n').slice(1)) {
    const at = /(?:\(|at (?:async )?)((?:file:\/\/)?\/?[^\s()]+:\d+):\d+\)?$/.exec(line)?.[1];
    if (!at || at.startsWith('node:') || line.includes('<anonymous>')) continue;
    const path = at.startsWith('file://') ? fileURLToPath(at) : at;
    if (!path.startsWith(SDK) && !path.includes('/node_modules/')) return path;
  }
  return undefined;
}
