// Lines of the user's code, for messages.
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const SDK = dirname(fileURLToPath(import.meta.url));

const OWN_URL = pathToFileURL(SDK).href;

/** Returns a stack without its outermost frames that are the SDK's and the runtime's, unless it has no others. */
export function userStack(stack: string): string {
  const lines = stack.split('\n');
  const own = (line: string): boolean =>
    /^\s+at /.test(line) && (/[( ]node:/.test(line) || line.includes(SDK) || line.includes(OWN_URL));
  const last = lines.findLastIndex((line) => !own(line));
  return /^\s+at /.test(lines[last] ?? '') ? lines.slice(0, last + 1).join('\n') : stack;
}

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
