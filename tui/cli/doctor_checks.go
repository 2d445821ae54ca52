package cli

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

// Limits between ok, warn and bad.
const (
	soon     = 14 * 24 * time.Hour // before a key or certificate expires
	skewWarn = 2 * time.Second
	skewBad  = 30 * time.Second // the default worker lease
	diskWarn = 1 << 30          // bytes left
	diskBad  = 256 << 20        // below, new runs are refused
)

// checks are the findings for a server that answered, from the connection up.
func (p *examined) checks() []Check {
	list := p.ofConnection()
	list = append(list, p.ofCaller(), p.ofClock())
	if p.info != nil {
		list = append(list, p.ofDatabase(), p.ofVersions())
		list = append(list, p.ofNotifications()...)
		list = append(list, p.ofDisk()...)
		list = append(list, p.ofBackups()...)
		for _, warning := range p.info.GetWarnings() {
			list = append(list, Check{Name: "exposure", State: checkWarn, Text: warning,
				Advice: "set --tls-cert and --tls-key on the server and create keys: kagzi tls init --help, kagzi key --help"})
		}
	}
	list = append(list, p.ofWorkers()...)
	list = append(list, p.ofQueues()...)
	list = append(list, p.ofKeys()...)
	if len(p.unanswered) > 0 {
		list = append(list, p.trouble)
	}
	if len(p.refused) > 0 {
		list = append(list, Check{Name: "left out", State: checkWarn,
			Text:   "not checked, the key may not see them: " + strings.Join(p.refused, ", "),
			Advice: "use an admin's key to check everything"})
	}
	return list
}

// ofConnection checks the server's health and the connection.
func (p *examined) ofConnection() []Check {
	text := fmt.Sprintf("answers at %s in %s", p.address, render.Duration(p.trip))
	info, encrypted := p.tls()
	if encrypted {
		text += ", " + tls.VersionName(info.State.Version)
	} else {
		text += ", not encrypted"
	}
	server := Check{Name: "server", State: checkOK, Text: text}
	if p.health.GetStatus() == kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING {
		server.State, server.Text = checkBad, "unhealthy: "+cmp.Or(p.health.GetMessage(), "no reason given")
		server.Advice = "see the server's log (installed as a service: kagzi service logs)"
	}
	list := []Check{server}
	if encrypted && len(info.State.PeerCertificates) > 0 {
		list = append(list, p.ofCertificate(info.State.PeerCertificates[0].NotAfter))
	}
	return list
}

func (p *examined) ofCertificate(until time.Time) Check {
	left := until.Sub(p.now())
	c := Check{Name: "certificate", State: checkOK, Text: "valid until " + until.UTC().Format(time.RFC3339)}
	if left < soon {
		c.State, c.Text = checkWarn, "the server's certificate expires "+render.Ago(-left)
		c.Advice = "renew it; if made by kagzi tls init: kagzi tls init --renew (the server reloads it)"
	}
	return c
}

// ofCaller shows the identity that the server sees.
func (p *examined) ofCaller() Check {
	c := Check{Name: "caller", State: checkOK, Text: "no key needed; every call is allowed"}
	key := p.me.GetKey()
	switch {
	case key != nil:
		c.Text = fmt.Sprintf("key %s (%s), role %s, %s", key.GetName(), key.GetKeyId(), render.KeyRole(key.GetRole()),
			strings.Join(render.KeyScope(key), ", "))
	case p.me.GetKeysRequired():
		c.Text = "trusted: in the server's process"
	}
	if name := p.me.GetCertificate(); name != "" {
		c.Text += ", client certificate " + name
	}
	return c
}

// ofClock compares the server's clock with this machine's, within the round-trip time.
func (p *examined) ofClock() Check {
	if p.health.GetTimestamp() == nil {
		return Check{Name: "clock", State: checkWarn, Text: "the server does not report its time",
			Advice: "the server is older than this program: upgrade it"}
	}
	skew := p.health.GetTimestamp().AsTime().Sub(p.sent.Add(p.trip / 2))
	off, ahead := skew.Abs(), "ahead of"
	if skew < 0 {
		ahead = "behind"
	}
	c := Check{Name: "clock", State: checkOK,
		Text: "the server's and this machine's clocks agree within " + render.Duration(max(off, p.trip))}
	if off-p.trip > skewWarn {
		c.State, c.Text = checkWarn, fmt.Sprintf(
			"the server's clock is %s %s this machine's", render.Duration(off), ahead)
		c.Advice = "enable NTP on both machines: timedatectl set-ntp true"
	}
	if off-p.trip > skewBad {
		c.State = checkBad
	}
	return c
}

// ofDatabase checks the database. Clients and workers see its kind only.
func (p *examined) ofDatabase() Check {
	i := p.info
	if !p.seen(serverSetUp) {
		return Check{Name: "database", State: checkOK, Text: i.GetBackend()}
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
		return Check{Name: "database", State: checkWarn, Text: text, Advice: warning}
	}
	return Check{Name: "database", State: checkOK, Text: text}
}

func (p *examined) ofVersions() Check {
	server := p.info.GetVersion()
	c := Check{Name: "versions", State: checkOK, Text: fmt.Sprintf("server %s, this program %s", server, p.version)}
	if least := p.info.GetMinSdkVersion(); least != "" {
		c.Text += ", SDKs from " + least
	}
	switch {
	case model.Older(server, p.version):
		c.State, c.Advice = checkWarn, "the server is older: upgrade it and restart"
	case model.Older(p.version, server):
		c.State, c.Advice = checkWarn, "this program is older: upgrade it"
	}
	return c
}

// ofNotifications checks how servers notify each other; nil if unknown.
func (p *examined) ofNotifications() []Check {
	how := p.info.GetNotifications()
	if !p.seen(serverSetUp) {
		return nil
	}
	if how == "polling" {
		return []Check{{Name: "notifications", State: checkWarn,
			Text:   "servers see each other's changes only by polling; runs may start seconds late",
			Advice: "connect to Postgres directly, not through a pooler in transaction mode, so that LISTEN works"}}
	}
	return []Check{{Name: "notifications", State: checkOK, Text: cmp.Or(how, "in-process")}}
}

// ofDisk checks the free space for the server's database; nil if unknown.
func (p *examined) ofDisk() []Check {
	value, told := model.Fact(p.info, "database", "free disk space")
	free, known := model.ParseBytes(value)
	if !told || !known {
		return nil
	}
	c := Check{Name: "disk", State: checkOK, Text: value + " free for the database"}
	if free < diskWarn {
		c.State, c.Advice = checkWarn,
			"free disk space, or keep ended runs for less time: kagzi namespace update NAME --retention 7d"
	}
	if free < diskBad {
		c.State, c.Text = checkBad, "only "+value+" free for the database: new runs are refused"
	}
	return []Check{c}
}

// ofBackups checks the server's automatic backups; nil if unknown.
func (p *examined) ofBackups() []Check {
	last, told := model.Fact(p.info, "backups", "last")
	if !told {
		return nil
	}
	if why, failed := model.Fact(p.info, "backups", "last error"); failed {
		return []Check{{Name: "backups", State: checkBad, Text: "the last backup failed: " + why,
			Advice: "check that the backup directory has space and is writable: kagzi version --server -o json"}}
	}
	return []Check{{Name: "backups", State: checkOK, Text: "last backup " + last}}
}

// ofWorkers counts the workers of the namespace.
func (p *examined) ofWorkers() []Check {
	if !p.seen("workers") {
		return nil
	}
	limit := 25 * time.Second
	if ms := p.info.GetHeartbeatIntervalMs(); ms > 0 {
		limit = time.Duration(ms) * time.Millisecond * 5 / 2
	}
	var online, draining int64
	versions, unversioned := map[string]int64{}, int64(0)
	var silent []string
	for _, w := range p.workers {
		switch w.GetStatus() {
		case kagziv1.WorkerStatus_WORKER_STATUS_ONLINE:
			online++
		case kagziv1.WorkerStatus_WORKER_STATUS_DRAINING:
			draining++
		default:
			continue
		}
		if p.serverNow().Sub(w.GetLastHeartbeatAt().AsTime()) > limit {
			silent = append(silent, w.GetWorkerId()) // the argument of `kagzi worker show`; host names may repeat
		}
		if v := w.GetVersion(); v != "" {
			versions[v]++
		} else {
			unversioned++
		}
	}
	c := Check{Name: "workers", State: checkOK,
		Text: fmt.Sprintf("%d online, %d draining in namespace %s", online, draining, p.namespace)}
	c.Text += versioned(versions, unversioned)
	list := []Check{c}
	if len(silent) > 0 {
		list = append(list, Check{Name: "workers", State: checkWarn,
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
func (p *examined) serverNow() time.Time {
	if at := p.health.GetTimestamp(); at != nil {
		return at.AsTime()
	}
	return p.now()
}

// ofQueues lists the queues with waiting runs that no worker serves.
func (p *examined) ofQueues() []Check {
	if !p.seen("queues") {
		return nil
	}
	var list []Check
	for _, q := range p.queues {
		if text := render.Unserved(q); text != "" {
			list = append(list, Check{Name: "queues", State: checkWarn,
				Text: "queue " + q.GetTaskQueue() + ": " + text,
				Advice: "start a worker for them: kagzi queue show " + q.GetTaskQueue() + " --namespace " +
					p.namespace})
		}
	}
	if len(list) == 0 {
		list = append(list, Check{Name: "queues", State: checkOK,
			Text: fmt.Sprintf("every waiting run in namespace %s has a worker that serves it", p.namespace)})
	}
	return list
}

// ofKeys counts the keys and lists those that expire soon.
func (p *examined) ofKeys() []Check {
	if !p.seen("keys") {
		return nil
	}
	var valid int
	var ending, ended []string
	for _, k := range p.keys {
		left := k.GetExpiresAt().AsTime().Sub(p.serverNow())
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
	c := Check{Name: "keys", State: checkOK, Text: flagvalue.Counted(int64(valid), "valid key")}
	switch {
	case len(p.keys) == 0:
		c.Text = "none: every call is allowed"
	case len(ending) > 0:
		c.State, c.Text = checkWarn, c.Text+"; "+some(ending)
		c.Advice = "create new keys, distribute them, and revoke the old ones: kagzi key create --help"
	case valid == 0:
		c.State, c.Text = checkBad, "every key has expired: every call is refused"
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
