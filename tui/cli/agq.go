package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/render"
)

func newAGQ(e *env) *cobra.Command {
	at := &agqAddress{}
	cmd := &cobra.Command{
		Use:   "agq",
		Short: "Submit plans to AGQ's workers, and show actions and workers",
		Long: `Submit plans to AGQ's workers, and show actions and workers. The server serves them with kagzi server --agq.

A plan has tasks, an action runs a plan once for each input, and each job is a run:

  kagzi workflow list -q 'type = "agq.job" and tag.agq.action = "ACTION"'

Show, cancel, retry and explain jobs as other runs.`,
	}
	cmd.PersistentFlags().StringVar(&at.address, "agq-address", "",
		"address of the server's AGQ port, host:port (default: the address that the server listens on)")
	cmd.AddCommand(newAGQSubmit(e, at, &agqSubmitOptions{}), newAGQStatus(e, at), newAGQWorkers(e, at),
		newAGQVerify(e, at))
	e.register(cmd)
	return cmd
}

type agqSubmitOptions struct {
	inputs []string
	action string
}

func newAGQSubmit(e *env, at *agqAddress, o *agqSubmitOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "submit PLAN.json",
		Short: "Submit a plan and run it once for each input",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := readPayload("PLAN.json", "@"+args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			submission := struct {
				Action string            `json:"action_id,omitempty"`
				Plan   string            `json:"plan_id"`
				Inputs []json.RawMessage `json:"inputs"`
			}{Action: o.action, Inputs: []json.RawMessage{}}
			for _, text := range o.inputs {
				input, err := readPayload("--input", text, cmd.InOrStdin())
				if err != nil {
					return err
				}
				submission.Inputs = append(submission.Inputs, input.GetData())
			}
			return e.agq(cmd, at, func(r *agqConn, out *output) error {
				if submission.Plan, err = r.text("PLAN.SUBMIT", string(plan.GetData())); err != nil {
					return err
				}
				text, err := json.Marshal(submission)
				if err != nil {
					return err
				}
				return r.show(out, "ACTION.SUBMIT", string(text))
			})
		},
	}
	cmd.Flags().StringArrayVar(&o.inputs, "input", nil,
		"input of a job: JSON, @FILE with JSON, or - for stdin; once for each job (default one job with {})")
	cmd.Flags().StringVar(&o.action, "action", "", "id of the action (default: a new one)")
	return cmd
}

func newAGQStatus(e *env, at *agqAddress) *cobra.Command {
	return &cobra.Command{
		Use:   "status ACTION",
		Short: "Show how far the jobs of an action are",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.agq(cmd, at, func(r *agqConn, out *output) error {
				return r.show(out, "ACTION.STATUS", args[0])
			})
		},
	}
}

func newAGQWorkers(e *env, at *agqAddress) *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List AGQ's workers, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.agq(cmd, at, func(r *agqConn, out *output) error {
				texts, err := r.do("WORKERS.LIST")
				if err != nil {
					return err
				}
				var workers []map[string]any
				if err := json.Unmarshal([]byte("["+strings.Join(texts, ",")+"]"), &workers); err != nil {
					return fmt.Errorf("the server's answer to WORKERS.LIST: %w", err)
				}
				items := make([]any, len(workers))
				for i, w := range workers {
					items[i] = w
				}
				return out.printList(listed{name: "workers", noun: "workers", items: items,
					none:  "no workers; start one with its server at the AGQ port",
					table: func() render.Table { return agqWorkersTable(workers) }}, pageTokens{})
			})
		},
	}
}

func newAGQVerify(e *env, at *agqAddress) *cobra.Command {
	return &cobra.Command{
		Use:   "verify WORKER TOOL [ARG...]",
		Short: "Have a worker run one of its tools, and record what it says",
		Long: `Have a worker run one of its tools or agentic units, and record the first line that it prints on the worker.
Without arguments the tool gets --version. Give arguments that begin with - after --. The server must have been
started with --agq-verify.`,
		Example: "  kagzi agq verify w1 sort\n  kagzi agq verify w1 agx-ocr -- --describe",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := map[string]any{"worker_id": args[0]}
			if len(args) > 2 {
				asked["args"] = args[2:]
			}
			text, err := json.Marshal(asked)
			if err != nil {
				return err
			}
			return e.agq(cmd, at, func(r *agqConn, out *output) error {
				answer, err := r.text("WORKER.VERIFY", args[1], string(text))
				if err != nil {
					return err
				}
				says, err := strconv.Unquote(strings.TrimPrefix(answer, "OK output="))
				if err != nil {
					return fmt.Errorf("the server's answer to WORKER.VERIFY: %w", errNotRESP)
				}
				return out.print(result{document: map[string]any{"worker_id": args[0], "tool": args[1], "output": says},
					human: func() []string { return []string{render.Safe(says)} }})
			})
		},
	}
}

func agqWorkersTable(workers []map[string]any) render.Table {
	t := render.Table{Columns: []render.Column{{Title: "WORKER"}, {Title: "STATUS"}, {Title: "JOBS", Right: true},
		{Title: "SILENT", Right: true}, {Title: "VERIFIED"}, {Title: "TOOLS", Flex: true}}}
	for _, w := range workers {
		tools := "any"
		if list, some := w["tools"].([]any); some {
			tools = strings.Trim(fmt.Sprint(list), "[]")
		}
		says, _ := w["verified"].(map[string]any) // without it nobody has asked
		var verified []string
		for _, name := range slices.Sorted(maps.Keys(says)) {
			verified = append(verified, fmt.Sprintf("%s: %v", name, says[name]))
		}
		t.Rows = append(t.Rows, []render.Cell{render.Text(fmt.Sprint(w["worker_id"])),
			render.Text(fmt.Sprint(w["status"])),
			render.Text(fmt.Sprintf("%v/%v", w["active_jobs"], w["max_concurrent_jobs"])),
			render.Text(fmt.Sprintf("%vs", w["seconds_since_heartbeat"])), render.Text(strings.Join(verified, "; ")),
			render.Text(tools)})
	}
	return t
}

// agq runs work on a connection to the server's AGQ port.
func (e *env) agq(cmd *cobra.Command, at *agqAddress, work func(*agqConn, *output) error) error {
	return e.run(cmd, func(ctx context.Context, c *client) error {
		r, err := e.dialAGQ(ctx, c, at)
		if err != nil {
			return err
		}
		defer r.close()
		return work(r, c.out)
	})
}

// show prints the answer to a command, which is a JSON object.
func (r *agqConn) show(out *output, args ...string) error {
	text, err := r.text(args...)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return fmt.Errorf("the server's answer to %s: %w", args[0], err)
	}
	return out.print(result{document: fields, human: func() []string {
		var list []render.Pair
		for _, name := range []string{"action_id", "plan_id", "status", "total_jobs", "jobs_created", "pending", "running",
			"completed", "failed", "dead", "job_ids"} {
			value, has := fields[name]
			if !has {
				continue
			}
			p := render.Pair{Label: strings.ReplaceAll(name, "_", " ")}
			if all, many := value.([]any); many {
				for _, one := range all {
					p.Lines = append(p.Lines, render.Safe(fmt.Sprint(one)))
				}
			} else if n, number := value.(float64); number {
				p.Lines = []string{strconv.FormatFloat(n, 'f', -1, 64)}
			} else {
				p.Lines = []string{render.Safe(fmt.Sprint(value))}
			}
			list = append(list, p)
		}
		return render.PairLines(list, out.colour)
	}})
}

var errNoAGQ = errors.New("the server does not serve AGQ; start it with kagzi server --agq 127.0.0.1:6380, " +
	"or give --agq-address if your key may not read its settings")
