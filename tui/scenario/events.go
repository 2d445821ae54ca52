package scenario

import (
	"math"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Recurring events of the shop: customers arrive, and every few minutes something fails and is
// fixed.

// weather is what fails around the shop for a while.
type weather struct{ bad string }

const (
	gatewayDown = "payment gateway down"
	mailDown    = "mail server down"
)

// spoils reports whether an act fails in this weather.
func (x *weather) spoils(a *act) bool { return x.bad != "" && a.during == x.bad }

const (
	rush      = 20 * time.Minute // before the beginning, more happens from then on
	slowPace  = 15 * time.Minute // mean time between two customers before the rush
	rushPace  = 10 * time.Second // during the rush
	livePace  = 3 * time.Second  // after the beginning
	slowTrips = 5 * time.Hour    // mean time between two incidents before the rush
	liveTrips = 4 * time.Minute
)

// open creates what exists when the server was just started.
func (d *Day) open() {
	name := "Shop"
	_, err := d.spaces.UpdateNamespace(ctx, &kagziv1.UpdateNamespaceRequest{
		Namespace: defaultNamespace, DisplayName: &name})
	d.must("name the namespace", err)
	about := "what is tried out before it goes live"
	_, err = d.spaces.CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{
		Namespace: "staging", DisplayName: "Staging", Description: &about})
	d.must("make the namespace staging", err)
}

// populate creates what exists a day before the beginning, and plans what has to exist at the
// beginning.
func (d *Day) populate() {
	d.hires()
	d.timetables()
	d.rehearse()
	d.after(d.pace(slowPace), (*Day).customer)
	d.after(slowTrips, (*Day).trip)
}

// pace returns a random time with a mean, at most six times as long.
func (d *Day) pace(mean time.Duration) time.Duration {
	wait := -math.Log(1-d.random.Float64()) * float64(mean)
	return time.Duration(math.Min(wait, 6*float64(mean))).Truncate(time.Millisecond)
}

// customer plays one customer, and plans the next.
func (d *Day) customer() {
	shares := 0
	for _, p := range catalog {
		shares += p.share
	}
	n := d.random.IntN(shares)
	for _, p := range catalog {
		if n -= p.share; n < 0 {
			d.start(d.request(p, defaultNamespace), p)
			break
		}
	}
	mean := livePace
	switch until := d.begin.Sub(d.now()); {
	case until > rush:
		mean = slowPace
	case until > 0:
		mean = rushPace
	}
	next := d.pace(mean)
	for _, change := range []time.Time{d.begin.Add(-rush), d.begin} { // of the pace
		if until := change.Sub(d.now()); until > 0 {
			next = min(next, until+time.Second)
		}
	}
	d.after(next, (*Day).customer)
}

// trips lists the possible incidents.
var trips = []func(*Day){
	func(d *Day) { d.storm(gatewayDown, 90*time.Second) },
	func(d *Day) { d.crash("reports-1", 100*time.Second) },
	func(d *Day) { d.storm(mailDown, time.Minute) },
	func(d *Day) { d.crash("media-1", 80*time.Second) },
	func(d *Day) { d.deploy("mailer-2", 3*time.Minute) },
}

// trip plays an incident, and plans the next.
func (d *Day) trip() {
	pick(d.random, trips)(d)
	mean := liveTrips
	if until := d.begin.Sub(d.now()); until > slowTrips+time.Hour {
		mean = slowTrips
	} else if until > 0 { // the beginning must be as planned
		mean += until
	}
	d.after(mean+d.random.between(0, time.Minute), (*Day).trip)
}

// storm is bad weather for a while.
func (d *Day) storm(bad string, lasts time.Duration) {
	d.weather.bad = bad
	d.after(lasts, func(d *Day) { d.weather.bad = "" })
}

// crash kills a worker without notice, and restarts it later.
func (d *Day) crash(id string, after time.Duration) {
	w := d.worker(id)
	if !w.online || w.silent {
		return
	}
	w.silent, w.held = true, nil
	d.after(after, func(d *Day) { d.hire(d.worker(id)) })
}

// deploy drains a worker, and restarts it later.
func (d *Day) deploy(id string, after time.Duration) {
	w := d.worker(id)
	if !w.online || w.silent {
		return
	}
	_, err := d.tasks.Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: id})
	d.must("deregister "+id, err)
	d.leaves(w, after)
}

// timetable lists the schedules.
var timetable = []struct {
	name, kind, cron, zone string
	overlap                kagziv1.OverlapPolicy
	paused                 bool
}{
	{name: "nightly-report", kind: "report.nightly", cron: "0 2 * * *", zone: "Europe/Berlin",
		overlap: kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP},
	{name: "catalog-import", kind: "import.catalog", cron: "*/15 * * * *",
		overlap: kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP},
	{name: "crm-sync", kind: "sync.crm", cron: "0 */20 * * * *",
		overlap: kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE},
	{name: "thumbnail-sweep", kind: "thumbnail", cron: "@hourly", zone: "America/New_York"},
	{name: "monthly-invoices", kind: "invoice.send", cron: "0 9 1 * *", zone: "Asia/Tokyo", paused: true},
	{name: "onboarding-digest", kind: "onboarding", cron: "30 7 * * MON-FRI", zone: "Europe/Kyiv"},
}

// timetables creates the schedules.
func (d *Day) timetables() {
	for _, t := range timetable {
		p, enabled := planOf(t.kind), !t.paused
		r := &kagziv1.CreateWorkflowScheduleRequest{
			Namespace: defaultNamespace, Name: t.name, CronExpr: t.cron, TimeZone: t.zone, OverlapPolicy: t.overlap,
			Enabled:   &enabled,
			TaskQueue: p.queue, WorkflowType: t.kind, Version: &p.version, Input: jsonPayload(p.input(d.random)),
		}
		if p.tags != nil {
			r.Tags = p.tags(d.random)
		}
		_, err := d.schedules.CreateWorkflowSchedule(ctx, r)
		d.must("make the schedule "+t.name, err)
	}
}
