// What the connection tells its worker.
import type { CancelTask, Lease, PauseTask, SessionResponse, SetNote, Task, WaitOver } from './v1/kagzi/v1/worker.js';
import type { Op } from './op.js';

/** What the connection tells its worker. */
export interface Events {
  task(task: Task): void;
  answer(op: Op, r: SessionResponse): void;
  cancelTask(c: CancelTask): void;
  pauseTask(p: PauseTask): void;
  waitOver(m: WaitOver): void;
  lost(lease: Lease): void;
  noteLost(note: SetNote): void;
  renewed(): void;
  /** Nothing was heard for so many milliseconds. */
  expired(silent: number): void;
  ready(): void;
  drain(): void;
  stopped(): void;
}
