package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// against is the earlier value of a figure, and the median of this bench divided by it.
type against struct {
	Median float64 `json:"median"`
	Ratio  float64 `json:"ratio"` // 0 if the earlier one is 0
}

// earlier reads the report of --compare, which must have every chosen workload.
func earlier(file string, chosen []workload) (*report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, usagef("--compare %s: %w; name a file written by kagzi bench --json", file, err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, usagef("--compare %s: is not a report of kagzi bench --json: %w", file, err)
	}
	if len(r.Workloads) == 0 {
		return nil, usagef("--compare %s: has no workloads; name a file written by kagzi bench --json", file)
	}
	var has, missing []string
	for _, w := range r.Workloads {
		has = append(has, w.Workload)
	}
	for _, w := range chosen {
		if !slices.Contains(has, w.id) {
			missing = append(missing, w.id)
		}
	}
	if len(missing) > 0 {
		return nil, usagef("--compare %s: has %s and not %s; measure only what it has with --workload %[2]s", file,
			strings.Join(has, ","), strings.Join(missing, ","))
	}
	return &r, nil
}

// compare adds to each figure that of an earlier report, and returns what differs between the two besides
// the figures.
func (r *report) compare(old *report, file string) (differs []string) {
	r.Compared = file
	for _, d := range []struct{ what, now, then string }{
		{"database", r.Server.Backend, old.Server.Backend},
		{"processor", r.Processor, old.Processor}, {"platform", r.Platform, old.Platform},
		{"cores", fmt.Sprint(r.Cores), fmt.Sprint(old.Cores)},
		{"worker", r.Worker, old.Worker},
	} {
		if d.now != d.then {
			differs = append(differs, fmt.Sprintf("%s: %s here, %s in %s", d.what, quoted(d.now), quoted(d.then), file))
		}
	}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		then := old.Workloads[slices.IndexFunc(old.Workloads, func(o workloadReport) bool {
			return o.Workload == w.Workload
		})]
		if w.InFlight != then.InFlight || w.Runs != then.Runs {
			differs = append(differs, fmt.Sprintf("%s: %s, %d in flight here, %s, %d in flight in %s", w.Workload,
				count(w.Runs, "run"), w.InFlight, count(then.Runs, "run"), then.InFlight, file))
		}
		for j := range w.Figures {
			f := &w.Figures[j]
			for _, o := range then.Figures {
				if o.Name == f.Name && o.Unit == f.Unit {
					f.Against = &against{o.Median, ratio(f.Median, o.Median)}
				}
			}
		}
	}
	return differs
}

func quoted(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
