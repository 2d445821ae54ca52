// Loggers of workers and of workflow code.
import { printable } from './convert.js';

/** Facts of a log line. */
export type Fields = Readonly<Record<string, unknown>>;

/** A logger. Those of pino, winston and the console fit after swapping the arguments. */
export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type Level = (typeof LEVELS)[number];

/** Returns a logger that writes lines to stderr, from a level on (`info`). */
export function textLog(least: Level = 'info'): Log {
  const at =
    (level: Level) =>
    (message: string, fields: Fields = {}) => {
      if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return;
      const facts = Object.entries(fields).map(([name, value]) => ` ${name}=${printable(String(value))}`);
      const text = message.split('\n').map(printable).join('\n');
      process.stderr.write(`${new Date().toISOString()} ${level.toUpperCase()} ${text}${facts.join('')}\n`);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
