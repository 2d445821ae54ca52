package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/format"
	"github.com/kagzi/kagzi/tui/widget"
)

// serverFact is the width of the names in the list of facts.
const serverFact = 18

// factLine returns a name and its value as a line.
func factLine(name, value string) widget.Line {
	return widget.Line{Cells: []render.Cell{{Text: format.Pad(render.Safe(name), serverFact), Style: render.Dim},
		{Text: value}}}
}

// withheld reports whether the server shows only the public facts, because the key is a client's or
// a worker's.
func withheld(info *kagziv1.GetServerInfoResponse) bool {
	return info != nil && info.GetStartedAt() == nil
}

// facts returns the facts about the server, section by section; settings have their own part.
func (p *serverPage) facts() []widget.Line {
	info := p.server.Info()
	if withheld(info) {
		return append([]widget.Line{
			factLine("version", info.GetVersion()),
			factLine("API", info.GetApiVersion()+", minimum SDK "+info.GetMinSdkVersion()),
			factLine("address", p.app.options.Address+source(p.app.options.Source)),
			factLine("round trip", p.roundTrip()),
			factLine("heartbeat", every(info.GetHeartbeatIntervalMs())),
			factLine("lease", every(info.GetLeaseMs())),
			factLine("backend", info.GetBackend()),
			{}, widget.TextLine("Only admins, operators and viewers see the rest.", render.Dim),
		}, p.features(info)...)
	}
	lines := []widget.Line{
		factLine("version", info.GetVersion()),
		factLine("started", p.app.clock.Full(info.GetStartedAt())),
		factLine("API", info.GetApiVersion()+", minimum SDK "+info.GetMinSdkVersion()),
		factLine("address", p.app.options.Address+source(p.app.options.Source)),
		factLine("round trip", p.roundTrip()),
		factLine("connections", strconv.Itoa(int(info.GetOpenConnections()))),
		factLine("streams", strconv.Itoa(int(info.GetOpenStreams()))),
		factLine("heartbeat", every(info.GetHeartbeatIntervalMs())),
		factLine("lease", every(info.GetLeaseMs())),
		{}, widget.TextLine("Database", render.Strong),
	}
	lines = append(append(lines, databaseLines(info)...), factLine("notifications", info.GetNotifications()))
	return append(append(lines, p.sections(info)...), p.features(info)...)
}

// databaseLines returns the facts about the database.
func databaseLines(info *kagziv1.GetServerInfoResponse) []widget.Line {
	return []widget.Line{
		factLine("backend", strings.TrimSpace(info.GetBackend()+" "+info.GetBackendVersion())),
		factLine("database", info.GetDatabase()),
		factLine("size", render.Bytes(info.GetDatabaseBytes())),
		factLine("schema", strconv.Itoa(int(info.GetSchemaVersion()))),
	}
}

// databaseFacts returns all that is known of a database file without a server.
func (p *serverPage) databaseFacts() []widget.Line {
	info := p.server.Info()
	return append(databaseLines(info), p.sections(info)...)
}

// sections returns the facts by section, in the server's order. The database section continues the
// one above it.
func (p *serverPage) sections(info *kagziv1.GetServerInfoResponse) []widget.Line {
	var lines []widget.Line
	section := "database"
	for _, f := range info.GetFacts() {
		if f.GetSection() == settingsSection {
			continue
		}
		if f.GetSection() != section {
			section = f.GetSection()
			lines = append(lines, widget.Line{}, widget.TextLine(titleCase(section), render.Strong))
		}
		lines = append(lines, factLine(f.GetName(), f.GetValue()+source(f.GetSource())))
	}
	return lines
}

func (p *serverPage) features(info *kagziv1.GetServerInfoResponse) []widget.Line {
	if len(info.GetSupportedFeatures()) == 0 {
		return nil
	}
	lines := []widget.Line{{}, widget.TextLine("Features", render.Strong)}
	for some := range slices.Chunk(info.GetSupportedFeatures(), 4) {
		lines = append(lines, widget.TextLine(strings.Join(some, ", "), render.Plain))
	}
	return lines
}

// settingsSection is the section whose facts are settings.
const settingsSection = "settings"

// settings returns the server's settings with the source of each. Changed ones stand out.
func (p *serverPage) settings() []widget.Line {
	var lines []widget.Line
	for _, f := range p.server.Info().GetFacts() {
		if f.GetSection() != settingsSection {
			continue
		}
		line := factLine(f.GetName(), f.GetValue())
		if from := f.GetSource(); from != "" && from != "default" {
			line.Cells[1].Style = render.Strong
			line.Cells = append(line.Cells, render.Cell{Text: source(from), Style: render.Busy})
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		lines = append(lines, widget.TextLine("The server does not report its settings.", render.Dim))
	}
	return lines
}

// source returns where a value came from, to put after it.
func source(from string) string {
	if from == "" {
		return ""
	}
	return "  (" + from + ")"
}

// roundTrip returns the latency of the server and the difference between the clocks.
func (p *serverPage) roundTrip() string {
	trip, skew := p.app.link.RoundTrip(), p.app.link.Skew()
	if trip == 0 {
		return "-"
	}
	text := render.Duration(trip)
	if trip < time.Millisecond {
		text = "under 1ms"
	}
	if skew.Abs() > time.Second {
		text += fmt.Sprintf(", clock off by %s", render.Duration(skew.Abs()))
	}
	return text
}

func every(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return render.Duration(time.Duration(ms) * time.Millisecond)
}

// titleCase makes the first letter upper case.
func titleCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// uptime returns how long something has been up; days and hours once it is days.
func (a *App) uptime(since time.Time) string {
	d := max(a.now().Sub(since), 0)
	if d < 48*time.Hour {
		return format.Waited(d)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}
