// Counts the words of many texts in parallel: a child run for each text, and a report that says which of them failed.
//
// node build/examples/fanout.js                 runs a worker
// node build/examples/fanout.js start TEXT...   starts a run and waits for its report; an empty text fails
import { type Child, Client, Failed, RunError, serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

export interface Report {
  words: number;
  /** Why, one for each text that could not be counted. */
  failed: string[];
}

/** The child. Its steps are calls of one run; a child would be too much for a line. */
export const count = workflow('count', { queue: 'words' }, async (run, text: string): Promise<number> => {
  if (!text) throw new Failed('the text is empty');
  const lines = text
    .split('\n')
    .map((line, i) => run.step(`line-${i}`, () => line.split(/\s+/).filter(Boolean).length));
  return (await Promise.all(lines)).reduce((sum, n) => sum + n, 0);
});

export const countAll = workflow('count-all', { queue: 'words' }, async (run, texts: string[]): Promise<Report> => {
  const children: Child<number>[] = [];
  for (const [i, text] of texts.entries()) {
    children.push(await run.startChild(`count-${i}`, count, text, { parentClose: 'cancel' }));
  }
  await run.waitAll(children).catch(() => undefined); // wakes the run only once; the report says which failed
  const report: Report = { words: 0, failed: [] };
  for (const child of children) {
    try {
      report.words += await child.result(); // known already: this does not wait
    } catch (e) {
      if (!(e instanceof RunError)) throw e;
      report.failed.push(e.detail);
    }
  }
  return report;
});

if (isMain(import.meta.url)) {
  const [command, ...texts] = process.argv.slice(2);
  if (command === 'start') {
    const client = new Client();
    console.log(await (await client.start(countAll, texts)).result());
    client.close();
  } else await serve([countAll, count], { maxConcurrent: 20 });
}
