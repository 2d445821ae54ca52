package storetest_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// shufflesTypes takes the types one after another instead of in one order.
type shufflesTypes struct{ engine.Store }

func (d shufflesTypes) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	var all engine.Claimed
	for _, t := range p.Types {
		one := p
		one.Types, one.Slots = []string{t}, p.Slots[len(all.Tasks):]
		if len(one.Slots) == 0 {
			break
		}
		claimed, err := d.Store.Claim(ctx, one)
		if err != nil {
			return all, err
		}
		claimed.Tasks = append(all.Tasks, claimed.Tasks...)
		all = claimed
	}
	return all, nil
}

// polls never returns when something becomes due.
type polls struct{ engine.Store }

func (d polls) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	claimed, err := d.Store.Claim(ctx, p)
	if len(claimed.Tasks) < len(p.Slots) {
		claimed.NextDue = p.Now.Add(time.Second)
	}
	return claimed, err
}

// repeatsRows begins a page with the last row of the page before.
type repeatsRows struct{ engine.Store }

func (d repeatsRows) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run,
	engine.PageInfo, error) {
	runs, info, err := d.Store.ListRuns(ctx, f, p)
	if p.After != nil && len(runs) > 1 {
		if last, none := d.GetRun(ctx, f.Namespace, p.After.ID); none == nil {
			runs = append([]engine.Run{last}, runs[:len(runs)-1]...)
		}
	}
	return runs, info, err
}

// losesRows skips a row between pages.
type losesRows struct{ engine.Store }

func (d losesRows) ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter,
	p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	if p.After != nil {
		after := *p.After
		after.Minor++
		p.After = &after
	}
	return d.Store.ListSteps(ctx, namespace, run, f, p)
}

// sortsByLocale orders names by locale instead of by byte.
type sortsByLocale struct{ engine.Store }

func (d sortsByLocale) ListTypes(ctx context.Context, namespace string, p engine.Page) ([]engine.TypeInfo,
	engine.PageInfo, error) {
	types, info, err := d.Store.ListTypes(ctx, namespace, p)
	slices.SortStableFunc(types, func(a, b engine.TypeInfo) int {
		return strings.Compare(strings.ToLower(a.Type), strings.ToLower(b.Type))
	})
	return types, info, err
}

// cutsAtNUL ends outputs at the first NUL.
type cutsAtNUL struct{ engine.Store }

func (d cutsAtNUL) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	p.Output.Data, _, _ = bytes.Cut(p.Output.Data, []byte{0})
	return d.Store.CompleteStep(ctx, p)
}

// roundsTimes rounds times to milliseconds.
type roundsTimes struct{ engine.Store }

func (d roundsTimes) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	p.Runs = slices.Clone(p.Runs)
	for i := range p.Runs {
		p.Runs[i].CreatedAt = p.Runs[i].CreatedAt.Truncate(time.Millisecond)
	}
	return d.Store.StartRuns(ctx, p)
}

// prunesTheLiving ends open runs in order to prune them.
type prunesTheLiving struct{ engine.Store }

func (d prunesTheLiving) Prune(ctx context.Context, p engine.PruneParams) (int, error) {
	runs, _, err := d.ListRuns(ctx, engine.RunFilter{Namespace: "default", CreatedBefore: p.Before},
		engine.Page{Limit: engine.MaxPage})
	if err != nil {
		return 0, err
	}
	for _, r := range runs {
		if !r.Status.Ended() {
			if _, err := d.CancelRun(ctx, engine.EndRunParams{
				Namespace: r.Namespace, RunID: r.ID, AuditID: r.ID, Now: r.CreatedAt}); err != nil {
				return 0, err
			}
		}
	}
	return d.Store.Prune(ctx, p)
}
