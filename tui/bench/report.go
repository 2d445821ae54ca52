package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/kagzi/kagzi/tui/render"
)

// report is the result of a bench. Its JSON is a stable contract.
type report struct {
	Server    serverReport     `json:"server"`
	Cores     int              `json:"cores"` // of the machine that made the load
	Platform  string           `json:"platform"`
	Slots     int              `json:"slots"`
	Repeat    int              `json:"repeat"`
	Workloads []workloadReport `json:"workloads"`
}

type serverReport struct {
	Address        string `json:"address,omitempty"` // empty for private ones
	Private        bool   `json:"private"`
	Version        string `json:"version"`
	Backend        string `json:"backend"`
	BackendVersion string `json:"backend_version"`
}

// workloadReport is one workload over all repetitions; what was counted is that of one repetition, the last.
type workloadReport struct {
	Workload string   `json:"workload"`
	What     string   `json:"what"`
	InFlight int      `json:"in_flight,omitempty"`
	Runs     int      `json:"runs"`
	Steps    int      `json:"steps"`
	Seconds  float64  `json:"seconds"`
	Figures  []spread `json:"figures"`
}

func newReport(o options, t *target) *report {
	return &report{
		Cores: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Slots: o.slots, Repeat: o.repeat,
		Server: serverReport{
			Address: t.address, Private: t.address == "", Version: t.info.GetVersion(),
			Backend: t.info.GetBackend(), BackendVersion: t.info.GetBackendVersion(),
		},
	}
}

func (r *report) add(w workload, p plan, samples []sample) {
	repetitions := make([][]figure, len(samples))
	for i, s := range samples {
		repetitions[i] = s.figures
	}
	last := samples[len(samples)-1]
	r.Workloads = append(r.Workloads, workloadReport{
		Workload: w.id, What: w.what, InFlight: p.inFlight,
		Runs: last.runs, Steps: last.steps, Seconds: last.elapsed.Seconds(), Figures: spreads(repetitions),
	})
}

// counted says what the figures of a workload were counted over.
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

// print writes the report as one JSON document or as a table.
func (r *report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	table := render.Table{Columns: []render.Column{
		{Title: "WORKLOAD"}, {Title: "FIGURE"}, {Title: "MEDIAN", Right: true}, {Title: "UNIT"}, {Title: "MIN..MAX"}, {Title: "COUNTED"},
	}}
	for _, w := range r.Workloads {
		for i, f := range w.Figures {
			head, counted := "", ""
			if i == 0 {
				head, counted = w.Workload+" "+w.What, w.counted()
			}
			extent := ""
			if r.Repeat > 1 {
				extent = digits(f.Min) + ".." + digits(f.Max)
			}
			table.Rows = append(table.Rows, []render.Cell{
				{Text: head}, {Text: f.Name}, {Text: digits(f.Median)}, {Text: f.Unit}, {Text: extent}, {Text: counted},
			})
		}
	}
	for _, line := range table.Lines(render.Layout{}) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
