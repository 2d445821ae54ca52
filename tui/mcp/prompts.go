package mcp

import (
	"context"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// prompt is a task that a person gives to an agent. Its text has a %s for each argument.
type prompt struct {
	name, title string
	run         bool // takes a run
	text        string
}

var prompts = []prompt{
	{name: "why_stuck", title: "Why is this run stuck?", run: true, text: `Why does run %s in namespace %s not go on?
1. Call explain_run. If it says what the run waits for, check that: list_workers and list_queues for a missing or
   busy worker, list_signals for a signal, get_run of a child.
2. Call list_steps and look at the last attempts: a step that fails again and again, or runs for long.
3. Answer in three sentences: what it waits for and since when, why, and what a person can do. Name the evidence.
Change nothing.`},
	{name: "failed_today", title: "What failed today?", text: `Which runs in namespace %s failed in the last 24 hours?
1. Call list_runs with statuses FAILED and TIMED_OUT and created_after; read on while there is a next_cursor.
2. Group them by type, failing step and error. For the three largest groups look at one run with list_steps.
3. Answer with a table: how many, type, step, error, first and last time, and one likely cause each.
Change nothing.`},
	{name: "safe_retry", title: "Plan a safe retry", run: true, text: `Plan how to retry run %s in namespace %s, and do not retry it yet.
1. Call get_run and list_steps. Note which steps completed, which failed and why, and whether steps began after the
   failure: these are often compensations, which undid earlier steps.
2. Decide: a plain retry keeps completed steps; from_step repeats a step and all after it; restart repeats all;
   keep_all keeps what began after the failure, too.
3. Say for each step that would run again which effect it has a second time, and whether its cause is fixed.
4. Answer with the call of retry_run that you propose, and wait for a person to agree.`},
}

func addPrompts(to *sdk.Server) {
	for i := range prompts {
		p := &prompts[i]
		var arguments []*sdk.PromptArgument
		if p.run {
			arguments = append(arguments, &sdk.PromptArgument{Name: "run_id", Required: true, Description: "id of the run"})
		}
		arguments = append(arguments, &sdk.PromptArgument{Name: "namespace", Description: "default: the connection's"})
		to.AddPrompt(&sdk.Prompt{Name: p.name, Title: p.title, Arguments: arguments}, p.get)
	}
}

// get returns the prompt's text. Its arguments are quoted: they may come from anywhere.
func (p *prompt) get(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	namespace := "of the connection"
	if name := r.Params.Arguments["namespace"]; name != "" {
		namespace = strconv.QuoteToASCII(name)
	}
	given := []any{namespace}
	if p.run {
		run := r.Params.Arguments["run_id"]
		if run == "" || len(run) > 255 {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "run_id: want the id of a run"}
		}
		given = []any{strconv.QuoteToASCII(run), namespace}
	}
	return &sdk.GetPromptResult{Description: p.title, Messages: []*sdk.PromptMessage{{Role: "user",
		Content: &sdk.TextContent{Text: fmt.Sprintf(p.text, given...)}}}}, nil
}
