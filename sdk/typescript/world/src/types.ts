// Names on the Kagzi server.
import { createHash } from 'node:crypto';

/** Types of the Kagzi runs. */
export const TYPES = {
  /** One for each workflow run: its signals are the event log. */
  run: 'world.run',
  /** One for each live hook: its external id keeps the token unique. */
  hook: 'world.hook',
  /** One or more for each stream: their signals are the chunks. */
  stream: 'world.stream',
  /** One for each queued message. */
  message: 'world.message',
} as const;

/** Statuses of Kagzi runs that have not ended. */
export const OPEN = ['PENDING', 'RUNNING', 'SLEEPING'] as const;

/** Returns whether a status is one of a run that has not ended. */
export function isOpen(status: string): boolean {
  return (OPEN as readonly string[]).includes(status);
}

/** Returns an id that the server takes for a text of any characters and length, different for different texts. */
export function idFor(kind: string, text: string): string {
  if (/^[A-Za-z0-9._:/-]{1,200}$/.test(text)) return `${kind}:t:${text}`;
  return `${kind}:h:${createHash('sha256').update(text).digest('hex')}`;
}
