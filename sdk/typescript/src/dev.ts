// Development: finds what workflow code may not do, and names the line.
import { createHook } from 'node:async_hooks';
import { Activation } from './activation.js';
import { Misuse } from './errors.js';
import { SDK, lineOf } from './lines.js';
import { scope } from './scope.js';

type Any = (...args: never[]) => unknown;

/** What is reported, and what to write instead. */
const INSTEAD: readonly [object, string, string][] = [
  [Date, 'now', 'Date.now is not the same in every replay: write run.now()'],
  [Math, 'random', 'Math.random is not the same in every replay: write run.random()'],
  [globalThis, 'setTimeout', 'timers are not recorded: write run.sleep(name, duration)'],
  [globalThis, 'setInterval', 'timers are not recorded: write run.sleep(name, duration) in a loop'],
  [globalThis, 'setImmediate', 'timers are not recorded: write run.sleep(name, duration)'],
  [globalThis, 'fetch', 'what fetch returns is not recorded: do it in a step'],
  [globalThis.crypto, 'randomUUID', 'crypto.randomUUID is not the same in every replay: write run.uuid()'],
];

/** Reports misuse in workflow code. One serves all workers of the process. */
export class Dev {
  static #one: Dev | undefined;
  /** Lines of promises that have not settled, by their async ids, for each run. */
  readonly #pending = new WeakMap<Activation, Map<number, string>>();
  readonly #runs = new Map<number, Activation>();

  /** Returns the reporter, which is installed when it is first wanted. */
  static install(): Dev {
    return (Dev.#one ??= new Dev());
  }

  private constructor() {
    for (const [owner, name, text] of INSTEAD) this.#watch(owner, name, text);
    const now = Date;
    globalThis.Date = new Proxy(now, {
      construct: (target, args: never[], made) => {
        if (args.length === 0) this.#report('new Date() is not the same in every replay: write run.now()');
        return Reflect.construct(target, args, made) as Date;
      },
    });
    createHook({
      init: (id, type) => {
        if (type !== 'PROMISE') return;
        const act = scope.getStore();
        if (!(act instanceof Activation)) return;
        const line = lineOf(new Error().stack ?? '');
        if (!line) return;
        const pending = this.#pending.get(act) ?? new Map<number, string>();
        this.#pending.set(act, pending.set(id, line));
        this.#runs.set(id, act);
      },
      promiseResolve: (id) => this.#settled(id),
      destroy: (id) => this.#settled(id),
    }).enable();
  }

  #settled(id: number): void {
    const act = this.#runs.get(id);
    if (!act) return;
    this.#runs.delete(id);
    this.#pending.get(act)?.delete(id);
  }

  #watch(owner: object, name: string, text: string): void {
    const own = Reflect.get(owner, name) as Any;
    const report = (): void => this.#report(text);
    const watched = function (this: unknown, ...args: never[]): unknown {
      report();
      return Reflect.apply(own, this, args);
    };
    Object.defineProperties(watched, Object.getOwnPropertyDescriptors(own)); // such as util.promisify.custom
    Object.defineProperty(owner, name, { value: watched, configurable: true, writable: true, enumerable: true });
  }

  /** Fails the run whose code runs now, unless the SDK itself called. */
  #report(text: string): void {
    const act = scope.getStore();
    if (!(act instanceof Activation)) return;
    const { stack = '' } = new Error();
    const caller = stack.split('\n').find((line, n) => n > 0 && !/\bdev\.js:/.test(line)) ?? '';
    const line = lineOf(stack);
    if (!line || caller.includes(SDK) || caller.includes('node:')) return;
    const error = new Misuse(`${line}: ${text}`);
    act.misused(error);
    throw error;
  }

  /** Returns the line of the last promise that the code of a run waits for. */
  foreignAwait(act: Activation): string | undefined {
    return [...(this.#pending.get(act)?.values() ?? [])].at(-1);
  }
}
