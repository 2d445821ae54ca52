package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/tui/render"
)

// report is the result of a bench. Its JSON is a stable contract.
type report struct {
	Command   string           `json:"command"` // without where it ran
	Server    serverReport     `json:"server"`
	Cores     int              `json:"cores"` // of the machine that made the load
	Platform  string           `json:"platform"`
	Processor string           `json:"processor,omitempty"`
	Go        string           `json:"go"`
	Slots     int              `json:"slots"`
	Repeat    int              `json:"repeat"`
	Machine   []spread         `json:"machine"` // its speed before each measurement
	Workloads []workloadReport `json:"workloads"`
	Worker    string           `json:"worker,omitempty"`   // the command of --worker
	Compared  string           `json:"compared,omitempty"` // the file of --compare
}

type serverReport struct {
	Address        string `json:"address,omitempty"` // empty for private servers
	Private        bool   `json:"private"`
	Servers        int    `json:"servers"`
	Version        string `json:"version"`
	Backend        string `json:"backend"`
	BackendVersion string `json:"backend_version"`
	Durability     string `json:"durability"` // as reported by the database: "journal_mode=wal, synchronous=full"
}

// workloadReport is one workload over all repetitions; counts are those of the last repetition.
type workloadReport struct {
	Workload string       `json:"workload"`
	What     string       `json:"what"`
	InFlight int          `json:"in_flight,omitempty"`
	Runs     int          `json:"runs"`
	Steps    int          `json:"steps"`
	Seconds  float64      `json:"seconds"`
	Figures  []spread     `json:"figures"`
	Costs    []costReport `json:"costs,omitempty"`
}

// costReport is what a part of a workload used: microseconds of processor time and commits per run
// or step, and memory.
type costReport struct {
	Stretch string   `json:"stretch,omitempty"` // empty for the whole workload
	Per     string   `json:"per"`
	Figures []spread `json:"figures"`
}

func newReport(o options, t *target, looks [][]figure) *report {
	return &report{
		Command: o.command(), Cores: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Processor: processorModel(), Go: runtime.Version(),
		Slots: o.slots, Repeat: o.repeat, Machine: spreads(looks), Worker: o.worker,
		Server: serverReport{
			Address: t.address, Private: t.address == "", Servers: max(1, t.servers), Version: t.info.GetVersion(),
			Backend: t.info.GetBackend(), BackendVersion: t.info.GetBackendVersion(),
			Durability: fact(t.info, "database", "durability"),
		},
	}
}

// command returns the options of the report, without addresses: database URLs may contain
// passwords.
func (o options) command() string {
	text := "kagzi bench --workload " + o.workloads
	if o.scale != 1 {
		text += fmt.Sprintf(" --scale %v", o.scale)
	}
	if o.duration > 0 {
		text += fmt.Sprintf(" --duration %s", o.duration)
	}
	if o.worker != "" {
		text += fmt.Sprintf(" --worker %q", o.worker)
	}
	if o.dbDelay > 0 {
		text += fmt.Sprintf(" --db-delay %s", o.dbDelay)
	}
	for _, f := range []struct {
		name           string
		value, usually int
	}{{"runs", o.runs, 0}, {"concurrency", o.concurrency, 0}, {"slots", o.slots, 100}, {"servers", o.servers, 1},
		{"repeat", o.repeat, 1}} {
		if f.value != f.usually {
			text += fmt.Sprintf(" --%s %d", f.name, f.value)
		}
	}
	return text
}

func (r *report) add(w workload, p plan, samples []sample) {
	repetitions := make([][]figure, len(samples))
	for i, s := range samples {
		repetitions[i] = s.figures
	}
	last := samples[len(samples)-1]
	added := workloadReport{
		Workload: w.id, What: w.what, InFlight: p.inFlight,
		Runs: last.runs, Steps: last.steps, Seconds: last.elapsed.Seconds(), Figures: spreads(repetitions),
	}
	for i, c := range last.costs {
		for j, s := range samples {
			repetitions[j] = s.costs[i].figures
		}
		added.Costs = append(added.Costs, costReport{Stretch: c.stretch, Per: c.per, Figures: spreads(repetitions)})
	}
	r.Workloads = append(r.Workloads, added)
}

// counted describes what the figures of a workload were measured over.
func (w workloadReport) counted() string {
	text := count(w.Runs, "run")
	if w.Steps > 0 {
		text += ", " + count(w.Steps, "step")
	}
	if w.InFlight > 0 {
		text += fmt.Sprintf(", %d in flight", w.InFlight)
	}
	return text + fmt.Sprintf(", %.1f s", w.Seconds)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// figureRows returns a row per figure: workload, name, median with unit, with --compare the earlier median
// and the ratio, extremes if repeated, and what it was measured over.
func (r *report) figureRows() [][]string {
	var rows [][]string
	for _, w := range r.Workloads {
		for i, f := range w.Figures {
			head, counted, extent := "", "", ""
			if i == 0 {
				head, counted = w.Workload+" "+w.What, w.counted()
			}
			if r.Repeat > 1 {
				extent = digits(f.Min) + ".." + digits(f.Max)
			}
			row := []string{head, f.Name, digits(f.Median), f.Unit, extent, counted}
			if r.Compared != "" {
				then, times := "", ""
				if f.Against != nil {
					then, times = digits(f.Against.Median), digits(f.Against.Ratio)
				}
				row = slices.Insert(row, 4, then, times)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// costRows returns a row per cost, in medians.
func (r *report) costRows() [][]string {
	var rows [][]string
	for _, w := range r.Workloads {
		for _, c := range w.Costs {
			of := map[string]string{}
			for _, f := range c.Figures {
				of[f.Name] = digits(f.Median)
			}
			head := strings.TrimSpace(w.Workload + " " + c.Stretch)
			row := []string{head, c.Per}
			for _, name := range []string{serverTime, workerTime, loadTime, databaseTime, commitsEach, writesEach,
				memoryFirst, memoryLast, memoryPeak} {
				row = append(row, of[name])
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// machine describes the machine and server in one line.
func (r *report) machine() string {
	parts := []string{count(r.Cores, "core")}
	if r.Processor != "" {
		parts = append(parts, r.Processor)
	}
	database := strings.TrimSpace(r.Server.Backend + " " + r.Server.BackendVersion)
	if r.Server.Durability != "" {
		database += " (" + r.Server.Durability + ")"
	}
	return strings.Join(append(parts, r.Platform, r.Go, "kagzi "+r.Server.Version, database), ", ")
}

// print writes the report as one JSON document, as tables in Markdown, or as tables.
func (r *report) print(out io.Writer, o options) error {
	if o.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	lay := plainLines
	if o.markdown {
		lay = markdownLines
	}
	lines := []string{r.machine(), "", r.Command, "", r.meanwhile(), ""}
	columns := figureColumns
	if r.Compared != "" {
		columns = slices.Insert(slices.Clone(columns), 4,
			render.Column{Title: "BEFORE", Right: true}, render.Column{Title: "RATIO", Right: true})
	}
	lines = append(lines, lay(columns, r.figureRows())...)
	if costs := r.costRows(); len(costs) > 0 {
		lines = append(append(lines, "", costsExplained, ""), lay(costColumns, costs)...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, render.Safe(line)); err != nil {
			return err
		}
	}
	return nil
}

const costsExplained = "Processor time in µs and commits, per run or step; server memory in MiB: mean of the first tenth and the last tenth of the time, and peak."

var (
	figureColumns = []render.Column{
		{Title: "WORKLOAD"}, {Title: "FIGURE"}, {Title: "MEDIAN", Right: true}, {Title: "UNIT"}, {Title: "MIN..MAX"},
		{Title: "COUNTED"},
	}
	costColumns = []render.Column{
		{Title: "WORKLOAD"}, {Title: "FOR A"}, {Title: "SERVER", Right: true}, {Title: "WORKER", Right: true},
		{Title: "LOAD", Right: true},
		{Title: "DATABASE", Right: true}, {Title: "COMMITS", Right: true}, {Title: "WRITES IN ONE", Right: true},
		{Title: "MEMORY FIRST", Right: true},
		{Title: "LAST", Right: true}, {Title: "PEAK", Right: true},
	}
)

func plainLines(columns []render.Column, rows [][]string) []string {
	table := render.Table{Columns: columns}
	for _, row := range rows {
		cells := make([]render.Cell, len(row))
		for i, text := range row {
			cells[i] = render.Text(text)
		}
		table.Rows = append(table.Rows, cells)
	}
	return table.Lines(render.Layout{})
}

func markdownLines(columns []render.Column, rows [][]string) []string {
	titles, rule := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		titles[i], rule[i] = strings.ToLower(c.Title), "---"
		if c.Right {
			rule[i] = "---:"
		}
	}
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
	lines := []string{line(titles), line(rule)}
	for _, row := range rows {
		lines = append(lines, line(row))
	}
	return lines
}
