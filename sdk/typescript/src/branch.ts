// Branches are the lines of execution of a run, and calls within them claim names.
import * as v1 from './v1/index.js';
import type { Activation } from './activation.js';
import { checkName } from './convert.js';
import { Coded } from './errors.js';
import { diverge } from './ending.js';
import { userLine } from './lines.js';

/** The beginning of the names of the SDK's own records. */
export const OWN = 'kagzi:';
export const CANCEL_NAME = `${OWN}cancelled`;
export const PATCHED = `${OWN}patched:`;
/** The record of an outcome that the record of its own call does not show. */
export const VERDICT = `${OWN}ended`;

const KIND_NAMES: Partial<Record<v1.StepKind, string>> = {
  [v1.StepKind.FUNCTION]: 'step',
  [v1.StepKind.SLEEP]: 'sleep',
  [v1.StepKind.SIGNAL]: 'wait for a signal',
  [v1.StepKind.CHILD_WORKFLOW]: 'child run',
};

/** Returns what a kind of step is called in messages. */
export function kindName(kind: v1.StepKind): string {
  return KIND_NAMES[kind] ?? 'step of unknown kind';
}

/** One line of execution. It is joined when its parent goes on and no child of the parent is unfinished. */
export class Branch {
  clock = 0;
  forks = 0;
  startedAt = 0;
  joinedAt = 0;
  joinedBy: Branch | undefined;
  done = false;
  readonly ordinals: readonly number[];
  readonly path: string;
  /** Random bytes, drawn from the recorded seed: what `random` and `uuid` return. */
  draw: ((size: number) => Buffer) | undefined;
  /** Whether its last call had a recorded result, so that it may be replaying. */
  replayed = false;
  ownResult = false;
  /** Log lines that are held back while it may be replaying. */
  lines: (() => void)[] = [];
  #children: Branch[] = [];

  constructor(
    readonly act: Activation,
    readonly parent: Branch | undefined,
  ) {
    if (!parent) {
      this.ordinals = [];
      this.path = '';
      return;
    }
    parent.tick();
    parent.forks++;
    this.startedAt = parent.clock;
    this.ordinals = [...parent.ordinals, parent.forks];
    this.path = this.ordinals.join('.');
    this.replayed = parent.replayed;
    this.ownResult = parent.ownResult;
    parent.#children.push(this);
  }

  /** Counts a call or a fork, and joins the children if all of them have ended. */
  tick(): void {
    if (this.#children.length > 0) this.join();
    this.clock++;
  }

  /** Takes note that the code has gone on after the ends of its children. */
  join(): void {
    if (this.#children.length === 0 || !this.#children.every((c) => c.done)) return;
    this.clock++;
    for (const c of this.#children) {
      c.joinedBy = this;
      c.joinedAt = this.clock;
      if (!c.replayed) this.writeLines();
      this.ownResult &&= c.ownResult;
    }
    this.#children = [];
  }

  /** Takes the end of its code. */
  ended(): void {
    this.done = true;
    this.join();
    this.writeLines();
  }

  /** Writes the log lines that were held back, because the branch is past its recorded calls. */
  writeLines(): void {
    this.replayed = false;
    const lines = this.lines;
    this.lines = [];
    if (!this.act.quitted) for (const write of lines) write();
  }
}

/** The last use of a name within a run. */
export class NameUse {
  inFlight = true;
  count = 1;
  at: number;

  constructor(public branch: Branch) {
    this.at = branch.clock;
  }

  /** Whether the use comes before what a branch does now, in every replay. */
  precedes(other: Branch): boolean {
    let by = this.branch;
    let at = this.at;
    for (;;) {
      if (by === other) return true;
      for (let line = other; line.parent; line = line.parent) {
        if (line.parent === by) return at <= line.startedAt;
      }
      if (!by.joinedBy) return false;
      [by, at] = [by.joinedBy, by.joinedAt];
    }
  }
}

/** Takes a name for a call: returns the name under which it is recorded, and its record. Throws what fails the run. */
export function claim(
  act: Activation,
  branch: Branch,
  written: string,
  kind: v1.StepKind,
  detail: string,
): [string, v1.Step | undefined] {
  branch.tick();
  if (!act.names.has(written)) checkName('step', written);
  for (;;) {
    const name = nextName(act, branch, written);
    const record = act.history.get(name);
    if (!record || matches(record, kind, detail)) {
      made(act, name);
      const verdict = act.verdicts.has(name);
      if (record || verdict) {
        branch.lines = [];
        branch.replayed = verdict || (record !== undefined && recordedAs(record, kind));
        branch.ownResult = kind === v1.StepKind.FUNCTION || kind === v1.StepKind.CHILD_WORKFLOW;
      }
      return [name, record];
    }
    const misfit = new Coded(
      `step ${name} is recorded as ${kindName(record.kind)}, but the code now makes a ${kindName(kind)}: this is not the code that the run started with`,
      'nondeterministic',
    );
    if (!act.worker.session.keepsOrder) throw misfit;
    if (act.uncalled.get(name)) {
      act.misfit = v1.Call.create({ name, kind, branch: branch.path, detail }) satisfies v1.Call;
      diverge(act);
      throw misfit;
    }
    made(act, name);
    (act.names.get(name) as NameUse).inFlight = false;
  }
}

function nextName(act: Activation, branch: Branch, written: string): string {
  const use = act.names.get(written);
  let name = written;
  if (use) {
    if (use.inFlight || !use.precedes(branch)) throw clash(written);
    use.branch = branch;
    use.at = branch.clock;
    for (;;) {
      use.count++;
      name = `${written}:${use.count}`;
      const other = act.names.get(name);
      if (!other) {
        checkName('numbered step', name);
        break;
      }
      if (other.inFlight || !other.precedes(branch)) throw clash(name);
    }
  }
  act.names.set(name, new NameUse(branch));
  return name;
}

function made(act: Activation, name: string): void {
  const owed = act.uncalled.get(name);
  if (owed === undefined) return;
  act.uncalled.delete(name);
  if (name.startsWith(OWN)) act.ownLeft--;
  if (owed) act.owing--;
}

function clash(name: string): Coded {
  return new Coded(
    `step name ${name} is used by two calls at once, at ${userLine()}; give each its own name, such as ${name}-1 and ${name}-2, or one after the other`,
    'step_name_clash',
  );
}

function matches(s: v1.Step, kind: v1.StepKind, detail: string): boolean {
  if (s.kind === v1.StepKind.UNSPECIFIED || v1.StepKind[s.kind] === undefined) return true; // of a newer server
  return s.kind === kind && (!s.signalName || s.signalName === detail);
}

/** Whether a call of that kind returns from the record. The start of a child does so while the child runs. */
export function recordedAs(s: v1.Step, kind: v1.StepKind): boolean {
  if (s.status === v1.StepStatus.COMPLETED) return true;
  if (s.status === v1.StepStatus.FAILED) return s.error?.code !== v1.ErrorCode.CRASHED || Boolean(s.childRunId);
  return s.status === v1.StepStatus.RUNNING && kind === v1.StepKind.CHILD_WORKFLOW;
}
