package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/near"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

// chooseFlags select runs; each flag is one condition of the filter language.
type chooseFlags struct {
	query      string
	status     []string
	types      []string
	queues     []string
	tags       map[string]string
	since      string
	until      string
	externalID string
	search     string
	schedule   string
	parent     string
	worker     string

	given func(name string) bool // whether the flag was given
}

const queryHelp = `filter, such as: status = FAILED and (type = "order*" or tag.customer = x) and created > -24h`

// filterHelp describes the language of -q.
var filterHelp = `A filter compares fields of a run, joined by and, or, not and parentheses. Operators: =, !=, in,
not in; of numbers, times and durations <, <=, >, >=. A * in a value stands for any text. "id" may
be the beginning of an id, "search" that of an id or external id; "text" is looked for in the type,
ids, note and error.

Fields of -q:
` + wrapped(query.Runs.Names(), 76) + "\nSee kagzi help query."

func (f *chooseFlags) register(e *env, cmd *cobra.Command) {
	fs := cmd.Flags()
	f.given = fs.Changed
	fs.StringVarP(&f.query, "query", "q", "", queryHelp)
	fs.StringSliceVar(&f.status, "status", nil,
		"runs with these statuses: PENDING, RUNNING, SLEEPING, COMPLETED, FAILED, CANCELLED, TIMED_OUT, TERMINATED")
	fs.StringSliceVar(&f.types, "type", nil, "runs of these workflow types")
	fs.StringSliceVar(&f.queues, "queue", nil, "runs of these queues")
	fs.Var(flagvalue.Pairs(&f.tags), "tag", "runs with this tag; may be repeated")
	fs.StringVar(&f.since, "since", "", "runs created at or after this time: -24h, 2026-11-20, 2026-11-20T12:00:00Z")
	fs.StringVar(&f.until, "until", "", "runs created before this time")
	fs.StringVar(&f.externalID, "external-id", "", "runs with this external id")
	fs.StringVar(&f.search, "search", "", "runs whose id or external id begins with this")
	fs.StringVar(&f.schedule, "schedule", "", "runs started by this schedule, by id or name")
	fs.StringVar(&f.parent, "parent", "", "children of this run")
	fs.StringVar(&f.worker, "worker", "", "runs that this worker holds")
	for flag, from := range map[string]completer{
		"type": completeTypes, "queue": completeQueues, "schedule": completeSchedules, "parent": completeRuns,
		"worker": completeWorkers} {
		_ = cmd.RegisterFlagCompletionFunc(flag, e.complete(from)) // fails only if the flag does not exist
	}
	_ = cmd.RegisterFlagCompletionFunc("status",
		words("PENDING", "RUNNING", "SLEEPING", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT", "TERMINATED"))
}

// filter combines -q and the flags to a filter in the language; empty: every run.
func (f *chooseFlags) filter() (string, error) {
	q, err := query.Runs.Parse(f.query, time.Time{})
	if err != nil {
		return "", filterError(err)
	}
	var all []string
	if q != nil {
		all = append(all, q.Operand())
	}
	for i, s := range f.status {
		f.status[i] = strings.ToUpper(s)
		if known := filter.Statuses(); s != "" && !slices.Contains(known, f.status[i]) {
			return "", unknownStatus(s, known)
		}
	}
	add := func(field string, values ...string) {
		for i, v := range values {
			values[i] = query.Quote(v)
		}
		switch {
		case len(values) == 1 && values[0] != `""`:
			all = append(all, field+" = "+values[0])
		case len(values) > 1:
			all = append(all, field+" in ("+strings.Join(values, ", ")+")")
		}
	}
	for _, wanted := range []struct {
		flag   string
		values []string
	}{
		{"status", f.status}, {"type", f.types}, {"queue", f.queues}, {"since", []string{f.since}},
		{"until", []string{f.until}},
		{"external-id", []string{f.externalID}}, {"search", []string{f.search}}, {"schedule", []string{f.schedule}},
		{"parent", []string{f.parent}}, {"worker", []string{f.worker}},
	} {
		switch { // an empty variable in a script
		case !f.given(wanted.flag):
		case strings.Join(wanted.values, "") == "":
			return "", usagef("--%s is empty; omit it to select any", wanted.flag)
		case slices.Contains(wanted.values, ""):
			return "", usagef("--%s has an empty value: %q", wanted.flag, strings.Join(wanted.values, ","))
		}
	}
	add("status", f.status...)
	add("type", f.types...)
	add("queue", f.queues...)
	for _, k := range slices.Sorted(maps.Keys(f.tags)) {
		all = append(all, "tag."+query.Quote(k)+" = "+query.Quote(f.tags[k]))
	}
	// A bare duration means the past: nothing was created in the future.
	for _, bound := range []struct{ flag, text, op string }{{"since", f.since, ">="}, {"until", f.until, "<"}} {
		if bound.text == "" {
			continue
		}
		if _, err := query.ParseTime(past(bound.text), time.Time{}); err != nil {
			return "", usagef("--%s %q: %w", bound.flag, bound.text, err)
		}
		all = append(all, "created "+bound.op+" "+past(bound.text))
	}
	add("external_id", f.externalID)
	add("search", f.search)
	add("schedule", f.schedule)
	add("parent", f.parent)
	add("worker", f.worker)
	return strings.Join(all, " and "), nil
}

// unknownStatus refuses the value of --status.
func unknownStatus(name string, known []string) error {
	meant := ""
	if name := near.Name(name, known); name != "" {
		meant = "did you mean " + name + "? "
	}
	return usagef("unknown status %q; %swant one of %s", name, meant, strings.Join(known, ", "))
}

// past reads "24h" as "-24h" and leaves other text alone.
func past(text string) string {
	if d, err := query.ParseDuration(text); err == nil && d > 0 && !strings.HasPrefix(text, "+") {
		return "-" + text
	}
	return text
}

// compile turns a filter into a query of this client's namespace.
func (c *client) compile(text string) (filter.Query, error) {
	q, _, err := c.compileAt(text, c.now())
	return q, err
}

// compileAt does so with relative times counted from now. relative says whether there are any.
func (c *client) compileAt(text string, now time.Time) (q filter.Query, relative bool, err error) {
	parsed, err := query.Runs.Parse(text, now)
	if err != nil { // each part is good: the whole is too long
		return filter.Query{}, false, &usageError{err: err}
	}
	return filter.Compile(parsed, c.namespace), parsed.Relative(), nil
}

// eachPage requests runs page by page until limit runs (negative: all) were seen or none are left.
// It returns the tokens of the pages before and after.
func (c *client) eachPage(ctx context.Context, q filter.Query, limit int, token string,
	see func([]*kagziv1.Workflow) error) (pageTokens, error) {
	return eachPage(limit, token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		q.Request.Page = page
		answer, err := c.ListWorkflows(ctx, q.Request)
		if err != nil {
			return 0, nil, err
		}
		runs := kept(q, answer.GetWorkflows())
		return len(runs), answer.GetPage(), see(runs)
	})
}

func kept(q filter.Query, runs []*kagziv1.Workflow) []*kagziv1.Workflow {
	if q.Keep == nil {
		return runs
	}
	var kept []*kagziv1.Workflow
	for _, r := range runs {
		if q.Keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// countRuns returns how many runs match a query.
func (c *client) countRuns(ctx context.Context, q filter.Query) (int64, error) {
	if q.Keep == nil {
		q.Request.Page = &kagziv1.PageRequest{PageSize: 1, IncludeTotalCount: true}
		answer, err := c.ListWorkflows(ctx, q.Request)
		return answer.GetPage().GetTotalCount(), err
	}
	var n int64
	_, err := c.eachPage(ctx, q, -1, "", func(runs []*kagziv1.Workflow) error {
		n += int64(len(runs))
		return nil
	})
	return n, err
}

// completeTime limits how long shell completion may take.
const completeTime = time.Second

// completer suggests values for what the user is typing.
type completer func(ctx context.Context, c *client, typed string) []cobra.Completion

// complete turns a completer into a cobra hook. A server that does not answer means no suggestions.
func (e *env) complete(from completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, closeConn, err := e.connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer func() { _ = closeConn() }() // no call is in flight
		parent := cmd.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completeTime)
		defer cancel()
		return from(ctx, c, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOne completes the first argument only.
func (e *env) completeOne(from completer) cobra.CompletionFunc {
	complete := e.complete(from)
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// words completes a flag that takes one of a few words.
func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// suggest keeps values that start with what was typed and are safe in a shell.
func suggest(list []cobra.Completion, typed, name, description string) []cobra.Completion {
	if name == "" || !strings.HasPrefix(name, typed) || render.Safe(name) != name {
		return list
	}
	return append(list, cobra.CompletionWithDesc(name, render.Safe(description)))
}

func completeRuns(ctx context.Context, c *client, typed string) []cobra.Completion {
	request := &kagziv1.ListWorkflowsRequest{Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: 30}}
	if typed != "" {
		request.Search = &typed
	}
	answer, _ := c.ListWorkflows(ctx, request) // on an error there is nothing to suggest, here and below
	var list []cobra.Completion
	for _, r := range answer.GetWorkflows() {
		list = suggest(list, typed, r.GetRunId(), r.GetWorkflowType()+" "+render.RunStatus(r.GetStatus()))
	}
	return list
}

func completeTypes(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListWorkflowTypes(ctx, &kagziv1.ListWorkflowTypesRequest{
		Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: maxPage}})
	var list []cobra.Completion
	for _, t := range answer.GetWorkflowTypes() {
		list = suggest(list, typed, t.GetWorkflowType(), strings.Join(t.GetTaskQueues(), " "))
	}
	return list
}

func completeQueues(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Namespace: c.namespace})
	var list []cobra.Completion
	for _, q := range answer.GetQueues() {
		list = suggest(list, typed, q.GetTaskQueue(), "")
	}
	return list
}

func completeWorkers(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListWorkers(ctx, &kagziv1.ListWorkersRequest{
		Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: 100}})
	var list []cobra.Completion
	for _, w := range answer.GetWorkers() {
		list = suggest(list, typed, w.GetWorkerId(), render.WorkerStatus(w.GetStatus())+" "+w.GetHostname())
	}
	return list
}

func completeNamespaces(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Page: &kagziv1.PageRequest{PageSize: maxPage}})
	var list []cobra.Completion
	for _, n := range answer.GetNamespaces() {
		list = suggest(list, typed, n.GetNamespace(), n.GetDisplayName())
	}
	return list
}

func completeSchedules(ctx context.Context, c *client, typed string) []cobra.Completion {
	answer, _ := c.ListWorkflowSchedules(ctx,
		&kagziv1.ListWorkflowSchedulesRequest{Namespace: c.namespace, Page: &kagziv1.PageRequest{PageSize: maxPage}})
	var list []cobra.Completion
	for _, s := range answer.GetSchedules() {
		about := s.GetWorkflowType() + " " + s.GetCronExpr()
		list = suggest(list, typed, s.GetName(), about)
		if s.GetName() == "" || typed != "" { // suggest ids only once one was begun
			list = suggest(list, typed, s.GetScheduleId(), about)
		}
	}
	return list
}

// stepsOf completes names of the steps of a run.
func stepsOf(runID string) completer {
	return func(ctx context.Context, c *client, typed string) []cobra.Completion {
		answer, _ := c.ListSteps(ctx, &kagziv1.ListStepsRequest{
			Namespace: c.namespace, RunId: runID, Page: &kagziv1.PageRequest{PageSize: maxPage}})
		var list []cobra.Completion
		for _, s := range answer.GetSteps() {
			if s.GetIsLatest() {
				list = suggest(list, typed, s.GetName(), render.StepStatus(s.GetStatus()))
			}
		}
		return list
	}
}

// completeStep completes a flag that names a step of the run given as first argument.
func (e *env) completeStep() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.complete(stepsOf(args[0]))(cmd, args, typed)
	}
}

// completeRunAndStep completes a run and then one of its steps.
func (e *env) completeRunAndStep() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return e.complete(completeRuns)(cmd, args, typed)
		case 1:
			return e.completeStep()(cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
