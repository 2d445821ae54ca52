// Package diagnosis judges what a server answered to `kagzi doctor`. It asks nothing itself.
package diagnosis

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
)

// Check is a finding about the setup.
type Check struct {
	Name   string // "disk"
	State  string // "ok", "warn" or "bad"
	Text   string // one line of raw text: what was found
	Advice string // how to fix it; empty if ok
}

// The states of a Check.
const (
	OK   = "ok"
	Warn = "warn"
	Bad  = "bad"
)

// Server holds the answers of a server. What it did not answer is nil.
type Server struct {
	Address, Namespace string
	Version            string    // of this program
	Now                time.Time // by this machine's clock

	Health  *kagziv1.HealthCheckResponse
	Sent    time.Time // when the server's health was requested
	Trip    time.Duration
	TLS     *tls.ConnectionState // nil: not encrypted
	Me      *kagziv1.WhoAmIResponse
	Info    *kagziv1.GetServerInfoResponse
	Workers []*kagziv1.Worker
	Queues  []*kagziv1.QueueDepth
	Keys    []*kagziv1.Key
	Refused []string // what the caller's key may not see

	Unanswered []string // what the server did not answer
	Trouble    Check    // why
}

// What Refused and Unanswered may hold. SetUp is what a server shows only to operators and admins.
const (
	Settings = "the server's settings"
	SetUp    = "how the server is set up"
	Workers  = "workers"
	Queues   = "queues"
	Keys     = "keys"
)

// seen reports whether the server answered about something.
func (s *Server) seen(what string) bool {
	return !slices.Contains(s.Refused, what) && !slices.Contains(s.Unanswered, what)
}

// Limits between ok, warn and bad.
const (
	soon     = 14 * 24 * time.Hour // before a key or certificate expires
	skewWarn = 2 * time.Second
	skewBad  = 30 * time.Second // the default worker lease
	diskWarn = 1 << 30          // bytes left
	diskBad  = 256 << 20        // below, new runs are refused
)

// Checks are the findings for a server that answered, from the connection up.
func (s *Server) Checks() []Check {
	list := s.Connection()
	list = append(list, s.ofCaller(), s.ofClock())
	if s.Info != nil {
		list = append(list, s.ofDatabase(), s.ofVersions())
		list = append(list, s.ofNotifications()...)
		list = append(list, s.ofDisk()...)
		list = append(list, s.ofBackups()...)
		for _, warning := range s.Info.GetWarnings() {
			list = append(list, Check{Name: "exposure", State: Warn, Text: warning,
				Advice: "set --tls-cert and --tls-key on the server and create keys: kagzi tls init --help, kagzi key --help"})
		}
	}
	list = append(list, s.ofWorkers()...)
	list = append(list, s.ofQueues()...)
	list = append(list, s.ofKeys()...)
	if len(s.Unanswered) > 0 {
		list = append(list, s.Trouble)
	}
	if len(s.Refused) > 0 {
		list = append(list, Check{Name: "left out", State: Warn,
			Text:   "not checked, the key may not see them: " + strings.Join(s.Refused, ", "),
			Advice: "use an admin's key to check everything"})
	}
	return list
}

// Connection checks the server's health and the connection.
func (s *Server) Connection() []Check {
	text := fmt.Sprintf("answers at %s in %s", s.Address, render.Duration(s.Trip))
	if s.TLS != nil {
		text += ", " + tls.VersionName(s.TLS.Version)
	} else {
		text += ", not encrypted"
	}
	server := Check{Name: "server", State: OK, Text: text}
	if s.Health.GetStatus() == kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING {
		server.State, server.Text = Bad, "unhealthy: "+cmp.Or(s.Health.GetMessage(), "no reason given")
		server.Advice = "see the server's log (installed as a service: kagzi service logs)"
	}
	list := []Check{server}
	if s.TLS != nil && len(s.TLS.PeerCertificates) > 0 {
		list = append(list, s.ofCertificate(s.TLS.PeerCertificates[0].NotAfter))
	}
	return list
}

func (s *Server) ofCertificate(until time.Time) Check {
	left := until.Sub(s.Now)
	c := Check{Name: "certificate", State: OK, Text: "valid until " + until.UTC().Format(time.RFC3339)}
	if left < soon {
		c.State, c.Text = Warn, "the server's certificate expires "+render.Ago(-left)
		c.Advice = "renew it; if made by kagzi tls init: kagzi tls init --renew (the server reloads it)"
	}
	return c
}

// ofCaller shows the identity that the server sees.
func (s *Server) ofCaller() Check {
	c := Check{Name: "caller", State: OK, Text: "no key needed; every call is allowed"}
	key := s.Me.GetKey()
	switch {
	case key != nil:
		c.Text = fmt.Sprintf("key %s (%s), role %s, %s", key.GetName(), key.GetKeyId(), render.KeyRole(key.GetRole()),
			strings.Join(render.KeyScope(key), ", "))
	case s.Me.GetKeysRequired():
		c.Text = "trusted: in the server's process"
	}
	if name := s.Me.GetCertificate(); name != "" {
		c.Text += ", client certificate " + name
	}
	return c
}

// ofClock compares the server's clock with this machine's, within the round-trip time.
func (s *Server) ofClock() Check {
	if s.Health.GetTimestamp() == nil {
		return Check{Name: "clock", State: Warn, Text: "the server does not report its time",
			Advice: "the server is older than this program: upgrade it"}
	}
	skew := s.Health.GetTimestamp().AsTime().Sub(s.Sent.Add(s.Trip / 2))
	off, ahead := skew.Abs(), "ahead of"
	if skew < 0 {
		ahead = "behind"
	}
	c := Check{Name: "clock", State: OK,
		Text: "the server's and this machine's clocks agree within " + render.Duration(max(off, s.Trip))}
	if off-s.Trip > skewWarn {
		c.State, c.Text = Warn, fmt.Sprintf(
			"the server's clock is %s %s this machine's", render.Duration(off), ahead)
		c.Advice = "enable NTP on both machines: timedatectl set-ntp true"
	}
	if off-s.Trip > skewBad {
		c.State = Bad
	}
	return c
}

// ofDatabase checks the database. Clients and workers see its kind only.
func (s *Server) ofDatabase() Check {
	i := s.Info
	if !s.seen(SetUp) {
		return Check{Name: "database", State: OK, Text: i.GetBackend()}
	}
	text := strings.TrimSpace(i.GetBackend()+" "+i.GetBackendVersion()) + ", " + i.GetDatabase()
	if i.GetDatabaseBytes() > 0 {
		text += ", " + render.Bytes(i.GetDatabaseBytes())
	}
	text = fmt.Sprintf("%s, schema %d", text, i.GetSchemaVersion())
	if name, ok := model.Fact(i, "database", "schema"); ok {
		text += " in the Postgres schema " + name
	}
	if warning, ok := model.Fact(i, "database", "warning"); ok {
		return Check{Name: "database", State: Warn, Text: text, Advice: warning}
	}
	return Check{Name: "database", State: OK, Text: text}
}

func (s *Server) ofVersions() Check {
	server := s.Info.GetVersion()
	c := Check{Name: "versions", State: OK, Text: fmt.Sprintf("server %s, this program %s", server, s.Version)}
	if least := s.Info.GetMinSdkVersion(); least != "" {
		c.Text += ", SDKs from " + least
	}
	switch {
	case model.Older(server, s.Version):
		c.State, c.Advice = Warn, "the server is older: upgrade it and restart"
	case model.Older(s.Version, server):
		c.State, c.Advice = Warn, "this program is older: upgrade it"
	}
	return c
}

// ofNotifications checks how servers notify each other; nil if unknown.
func (s *Server) ofNotifications() []Check {
	how := s.Info.GetNotifications()
	if !s.seen(SetUp) {
		return nil
	}
	if how == "polling" {
		return []Check{{Name: "notifications", State: Warn,
			Text:   "servers see each other's changes only by polling; runs may start seconds late",
			Advice: "connect to Postgres directly, not through a pooler in transaction mode, so that LISTEN works"}}
	}
	return []Check{{Name: "notifications", State: OK, Text: cmp.Or(how, "in-process")}}
}

// ofDisk checks the free space for the server's database; nil if unknown.
func (s *Server) ofDisk() []Check {
	value, told := model.Fact(s.Info, "database", "free disk space")
	free, known := model.ParseBytes(value)
	if !told || !known {
		return nil
	}
	c := Check{Name: "disk", State: OK, Text: value + " free for the database"}
	if free < diskWarn {
		c.State, c.Advice = Warn,
			"free disk space, or keep ended runs for less time: kagzi namespace update NAME --retention 7d"
	}
	if free < diskBad {
		c.State, c.Text = Bad, "only "+value+" free for the database: new runs are refused"
	}
	return []Check{c}
}

// ofBackups checks the server's automatic backups; nil if unknown.
func (s *Server) ofBackups() []Check {
	last, told := model.Fact(s.Info, "backups", "last")
	if !told {
		return nil
	}
	if why, failed := model.Fact(s.Info, "backups", "last error"); failed {
		return []Check{{Name: "backups", State: Bad, Text: "the last backup failed: " + why,
			Advice: "check that the backup directory has space and is writable: kagzi version --server -o json"}}
	}
	return []Check{{Name: "backups", State: OK, Text: "last backup " + last}}
}

// ofWorkers counts the workers of the namespace.
func (s *Server) ofWorkers() []Check {
	if !s.seen(Workers) {
		return nil
	}
	limit := 25 * time.Second
	if ms := s.Info.GetHeartbeatIntervalMs(); ms > 0 {
		limit = time.Duration(ms) * time.Millisecond * 5 / 2
	}
	var online, draining int64
	versions, unversioned := map[string]int64{}, int64(0)
	var silent []string
	for _, w := range s.Workers {
		switch w.GetStatus() {
		case kagziv1.WorkerStatus_WORKER_STATUS_ONLINE:
			online++
		case kagziv1.WorkerStatus_WORKER_STATUS_DRAINING:
			draining++
		default:
			continue
		}
		if s.serverNow().Sub(w.GetLastHeartbeatAt().AsTime()) > limit {
			silent = append(silent, w.GetWorkerId()) // the argument of `kagzi worker show`; host names may repeat
		}
		if v := w.GetVersion(); v != "" {
			versions[v]++
		} else {
			unversioned++
		}
	}
	c := Check{Name: "workers", State: OK,
		Text: fmt.Sprintf("%d online, %d draining in namespace %s", online, draining, s.Namespace)}
	c.Text += versioned(versions, unversioned)
	list := []Check{c}
	if len(silent) > 0 {
		list = append(list, Check{Name: "workers", State: Warn,
			Text:   "no heartbeat for more than two intervals: " + some(silent),
			Advice: "check that they run and reach the server: kagzi worker show ID; other workers get their runs when the lease expires"})
	}
	return list
}

// versioned counts the workers of each version, if any has one; none is the number without.
func versioned(versions map[string]int64, none int64) string {
	names := slices.Sorted(maps.Keys(versions))
	if len(names) == 0 {
		return ""
	}
	if len(names) == 1 && none == 0 {
		return ", of version " + some(names)
	}
	for i, v := range names {
		names[i] = fmt.Sprintf("%d of version %s", versions[v], v)
	}
	list := some(names)
	if none > 0 {
		list += fmt.Sprintf(", %d without a version", none)
	}
	return ": " + list
}

// serverNow returns the time by the server's clock.
func (s *Server) serverNow() time.Time {
	if at := s.Health.GetTimestamp(); at != nil {
		return at.AsTime()
	}
	return s.Now
}

// ofQueues lists the queues with waiting runs that no worker serves.
func (s *Server) ofQueues() []Check {
	if !s.seen(Queues) {
		return nil
	}
	var list []Check
	for _, q := range s.Queues {
		if text := render.Unserved(q); text != "" {
			list = append(list, Check{Name: "queues", State: Warn,
				Text: "queue " + q.GetTaskQueue() + ": " + text,
				Advice: "start a worker for them: kagzi queue show " + q.GetTaskQueue() + " --namespace " +
					s.Namespace})
		}
	}
	if len(list) == 0 {
		list = append(list, Check{Name: "queues", State: OK,
			Text: fmt.Sprintf("every waiting run in namespace %s has a worker that serves it", s.Namespace)})
	}
	return list
}

// ofKeys counts the keys and lists those that expire soon.
func (s *Server) ofKeys() []Check {
	if !s.seen(Keys) {
		return nil
	}
	var valid int
	var ending, ended []string
	for _, k := range s.Keys {
		left := k.GetExpiresAt().AsTime().Sub(s.serverNow())
		switch {
		case k.GetExpiresAt() == nil || left >= soon:
			valid++
		case left > 0:
			valid++
			ending = append(ending, fmt.Sprintf("key %q expires %s", k.GetName(), render.Ago(-left)))
		default:
			ended = append(ended, k.GetName())
		}
	}
	c := Check{Name: "keys", State: OK, Text: flagvalue.Counted(int64(valid), "valid key")}
	switch {
	case len(s.Keys) == 0:
		c.Text = "none: every call is allowed"
	case len(ending) > 0:
		c.State, c.Text = Warn, c.Text+"; "+some(ending)
		c.Advice = "create new keys, distribute them, and revoke the old ones: kagzi key create --help"
	case valid == 0:
		c.State, c.Text = Bad, "every key has expired: every call is refused"
		c.Advice = "on the database's host: kagzi key create NAME --role admin --db default"
	}
	if len(ended) > 0 && valid > 0 {
		c.Text += "; expired: " + some(ended)
	}
	return []Check{c}
}

// some lists the first names and counts the rest.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
