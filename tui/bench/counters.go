package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// counters are sums of the servers' metrics.
type counters struct {
	commits float64
	writes  float64 // in those commits
	claims  float64 // requests to the store for due runs
}

// counterNames maps metrics to fields.
var counterNames = map[string]func(*counters) *float64{
	"kagzi_commit_writes_count":          func(c *counters) *float64 { return &c.commits },
	"kagzi_commit_writes_sum":            func(c *counters) *float64 { return &c.writes },
	"kagzi_claim_duration_seconds_count": func(c *counters) *float64 { return &c.claims },
}

// add reads metrics in the text format of Prometheus. Each named metric must be present.
func (c *counters) add(text io.Reader) error {
	missing := len(counterNames)
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		field, wanted := counterNames[name]
		if !wanted {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("metric %s: %w", name, err)
		}
		*field(c) += n
		missing--
	}
	if missing > 0 && lines.Err() == nil {
		return fmt.Errorf("%d of %d metrics are missing", missing, len(counterNames))
	}
	return lines.Err()
}

func (c counters) minus(earlier counters) counters {
	return counters{commits: c.commits - earlier.commits, writes: c.writes - earlier.writes,
		claims: c.claims - earlier.claims}
}

// fetch adds the metrics of the server at an address.
func (c *counters) fetch(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("metrics at %s: %s", address, response.Status)
	}
	return c.add(response.Body)
}

// fact returns a line of a server's info; empty if it has none.
func fact(info *kagziv1.GetServerInfoResponse, section, name string) string {
	for _, f := range info.GetFacts() {
		if f.GetSection() == section && f.GetName() == name {
			return f.GetValue()
		}
	}
	return ""
}
