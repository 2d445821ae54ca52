// The TypeScript part of sdk/examples/mixed: reviews a claim, for which it waits for a person.
//
// node build/examples/review.js   runs a worker
import { serve, workflow } from '@kagzi/sdk';
import { isMain } from './main.js';

export interface Request {
  claim: string;
  label: string;
}

export interface Review {
  approved: boolean;
  by: string;
}

export const review = workflow('review', { queue: 'review' }, async (run, request: Request): Promise<Review> => {
  const { claim, label } = request;
  const offer = await run.signal<number>('offer', { limit: '10m' }); // from the Python parent
  await run.step('ask', () => console.log(`please review claim ${claim}: ${label}, ${offer}`));
  run.note(`offers ${offer}, waits for a decision`); // shown in lists of runs
  return run.signal<Review>('decision');
});

if (isMain(import.meta.url)) await serve([review]);
