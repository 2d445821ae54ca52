// Figures of a worker, for its heartbeats.
import * as v1 from './v1/index.js';
import { monotonic } from './convert.js';

/** Runs that have ended since the last accepted heartbeat. */
export interface Ended {
  completed: number;
  failed: number;
}

/** Counts of runs, and the load of the process. */
export class Stats {
  #ended: Ended = { completed: 0, failed: 0 };
  #runs = 0;
  #ms = 0;
  #cpu = { at: monotonic(), used: process.cpuUsage() };

  /** Counts a run that has ended. */
  count(status: v1.WorkflowStatus | undefined, ms: number): void {
    if (status === v1.WorkflowStatus.COMPLETED) this.#ended.completed++;
    if (status === v1.WorkflowStatus.FAILED) this.#ended.failed++;
    this.#runs++;
    this.#ms += ms;
  }

  /** Returns the counts, and begins new ones. */
  take(): Ended {
    const ended = this.#ended;
    this.#ended = { completed: 0, failed: 0 };
    return ended;
  }

  /** Takes counts back that did not reach the server. */
  giveBack({ completed, failed }: Ended): void {
    this.#ended.completed += completed;
    this.#ended.failed += failed;
  }

  /** Returns the load for the wire. */
  wire(): v1.WorkerStats {
    const now = monotonic();
    const used = process.cpuUsage(this.#cpu.used);
    const cpuPercent = (used.user + used.system) / 10 / Math.max(now - this.#cpu.at, 1);
    this.#cpu = { at: now, used: process.cpuUsage() };
    return v1.WorkerStats.create({
      cpuPercent,
      memoryBytes: process.memoryUsage.rss(),
      uptimeSeconds: Math.floor(process.uptime()),
      averageRunMs: this.#runs ? this.#ms / this.#runs : 0,
    });
  }
}
