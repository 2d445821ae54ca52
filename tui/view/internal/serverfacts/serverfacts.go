// Package serverfacts lists what a server reports about itself, as lines.
package serverfacts

import (
	"slices"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// Connection says how the server was reached.
type Connection struct {
	Address, Source string
	Started         string        // when the server started, as the page writes times
	Trip, Skew      time.Duration // of the round trip; between the clocks
}

// nameWidth is the width of the names in the list of facts.
const nameWidth = 18

// factLine returns a name and its value as a line.
func factLine(name, value string) widget.Line {
	return widget.Line{Cells: []render.Cell{{Text: format.Pad(render.Safe(name), nameWidth), Style: render.Dim},
		{Text: value}}}
}

// Withheld reports whether the server shows only the public facts, because the key is a client's or
// a worker's.
func Withheld(info *kagziv1.GetServerInfoResponse) bool {
	return info != nil && info.GetStartedAt() == nil
}

// Lines returns the facts about the server, section by section, but for the settings.
func Lines(info *kagziv1.GetServerInfoResponse, by Connection) []widget.Line {
	if Withheld(info) {
		return append([]widget.Line{
			factLine("version", info.GetVersion()),
			factLine("API", info.GetApiVersion()+", minimum SDK "+info.GetMinSdkVersion()),
			factLine("address", by.Address+source(by.Source)),
			factLine("round trip", by.roundTrip()),
			factLine("heartbeat", every(info.GetHeartbeatIntervalMs())),
			factLine("lease", every(info.GetLeaseMs())),
			factLine("backend", info.GetBackend()),
			{}, widget.TextLine("Only admins, operators and viewers see the rest.", render.Dim),
		}, features(info)...)
	}
	lines := []widget.Line{
		factLine("version", info.GetVersion()),
		factLine("started", by.Started),
		factLine("API", info.GetApiVersion()+", minimum SDK "+info.GetMinSdkVersion()),
		factLine("address", by.Address+source(by.Source)),
		factLine("round trip", by.roundTrip()),
		factLine("connections", strconv.Itoa(int(info.GetOpenConnections()))),
		factLine("streams", strconv.Itoa(int(info.GetOpenStreams()))),
		factLine("heartbeat", every(info.GetHeartbeatIntervalMs())),
		factLine("lease", every(info.GetLeaseMs())),
		{}, widget.TextLine("Database", render.Strong),
	}
	lines = append(append(lines, databaseLines(info)...), factLine("notifications", info.GetNotifications()))
	return append(append(lines, sections(info)...), features(info)...)
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

// Database returns all that is known of a database file without a server.
func Database(info *kagziv1.GetServerInfoResponse) []widget.Line {
	return append(databaseLines(info), sections(info)...)
}

// sections returns the facts by section, in the server's order. The database section continues the
// one above it.
func sections(info *kagziv1.GetServerInfoResponse) []widget.Line {
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

func features(info *kagziv1.GetServerInfoResponse) []widget.Line {
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

// Settings returns the server's settings with the source of each. Changed ones stand out.
func Settings(info *kagziv1.GetServerInfoResponse) []widget.Line {
	var lines []widget.Line
	for _, f := range info.GetFacts() {
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
func (by Connection) roundTrip() string {
	if by.Trip == 0 {
		return "-"
	}
	text := render.Duration(by.Trip)
	if by.Trip < time.Millisecond {
		text = "under 1ms"
	}
	if by.Skew.Abs() > time.Second {
		text += ", clock off by " + render.Duration(by.Skew.Abs())
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
